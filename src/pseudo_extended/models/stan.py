"""x."""
from typing import Any
def from_stan(model: Any) -> Any:
    """x."""
