"""`python -m pseudo_extended` is the command `pseudo-extended`."""

import sys

from pseudo_extended.optional import require


def main() -> None:
    """Run the command, or say in one sentence which package it needs."""
    try:
        require("typer", "'pseudo-extended[cli]'", "the command pseudo-extended")
    except ImportError as error:
        sys.exit(f"pseudo-extended: {error}")
    from pseudo_extended.cli import app

    app()


if __name__ == "__main__":
    main()
