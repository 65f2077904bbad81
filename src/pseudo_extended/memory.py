"""How much memory this process can still take."""

import math
import os
from pathlib import Path
from typing import Any

import jax

COPIES = 4
"""Of a state of the chains, while they advance."""


def free_memory() -> float:
    """Bytes that this process could take without the machine swapping, as far as that can be known."""
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        free = 1024.0 * float(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        try:
            free = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) / 2
        except (AttributeError, ValueError, OSError):
            return float("inf")
    try:  # a container's own limit
        limit, used = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
        return min(free, float(limit - used))
    except (OSError, ValueError):
        return free


def check_fits(name: str, value: int, num_bytes: float) -> None:
    """Refuse a count whose arrays would take more than half of the memory that is free, before they do."""
    free = free_memory()
    if num_bytes > free / 2:
        raise ValueError(
            f"{name} must be smaller: {value} takes about {size(num_bytes)}; this machine has {size(free)} free."
        )


def check_state(chains: Any) -> None:
    """Refuse a method whose chains, of these shapes, remember more than there is memory for."""
    needed = sum(COPIES * math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(chains))
    free = free_memory()
    if needed > free / 2:
        raise ValueError(
            f"method must remember less: the state of its chains takes about {size(needed)}; this machine has "
            f"{size(free)} free."
        )


def size(num_bytes: float) -> str:
    """A number of bytes, to be read.

    >>> size(1.5e9), size(2e6), size(300)
    ('1.5 GB', '2.0 MB', '0.3 kB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if num_bytes >= factor:
            return f"{num_bytes / factor:,.1f} {unit}"
    return f"{num_bytes / 1e3:,.1f} kB"
