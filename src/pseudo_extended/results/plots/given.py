"""What is given to a plot."""

from typing import Any

from pseudo_extended import checks


def check_result(name: str, value: Any) -> None:
    """Refuse what is no result: plots take whatever has a result's draws, and `Result` itself lies above them."""
    if isinstance(value, type) or not all(hasattr(value, each) for each in ("target", "log_weights", "statistics")):
        raise TypeError(f"{name} must be a result, as pe.sample returns it; got {checks.describe(value)}.")
