"""How much memory this process can still take."""

import os
from pathlib import Path


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
