"""Options of XLA for one program: a fixed property of the program, as its numbers may depend on them."""

from typing import Any

import jaxlib

EMITTERS_STAY_ON = (0, 11, 1)
"""From this jaxlib on, XLA ends a process that turns them off."""


def quick_options() -> dict[str, Any]:
    """Options that compile fastest, for a program that runs for a fraction of a second."""
    options: dict[str, Any] = {"xla_backend_optimization_level": 0}
    if jaxlib.version.__version_info__[:3] < EMITTERS_STAY_ON:
        options["xla_cpu_use_fusion_emitters"] = False
    return options


def loop_options() -> dict[str, Any]:
    """Options for a long loop of small kernels.

    Unless told otherwise, XLA orders kernels so that many of them can run at a time, and hands them from thread to
    thread. In an order that reuses memory they follow each other: a draw of two normals in d = 10 takes 31 µs of
    processor time, and not 43. The numbers are the same.
    """
    return {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}


def single_threaded_options() -> dict[str, Any]:
    """Options for a program with a Fourier transform, which since jaxlib 0.11.1 may wait for its own threads."""
    return {"xla_cpu_multi_thread_eigen": False}
