"""`python -m pseudo_extended` is the command `pseudo-extended`."""

from pseudo_extended.cli import app

if __name__ == "__main__":
    app()
