"""`python -m pseudo_extended_reproduction` is the command `pseudo-extended reproduce`."""

from pseudo_extended_reproduction.command import app

if __name__ == "__main__":
    app()
