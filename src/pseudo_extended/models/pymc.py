"""x."""
from typing import Any
def from_pymc(model: Any) -> Any:
    """x."""
