"""Waiting for XLA where Ctrl-C is heard, and saying so if what one waits for is stuck.

A thread that is inside XLA hears nothing until XLA comes back. So programs run and are compiled on threads of their
own, which do not keep the interpreter alive, and whoever wants the result waits in Python.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from threading import Thread
from typing import Any

import jax
import numpy as np

PATIENCE = 60.0
"""Seconds without processor time after which something is stuck; `PSEUDO_EXTENDED_PATIENCE` in the environment wins."""
IDLE = 0.01
"""Processor seconds in a second, below which the process is idle."""


def on_own_thread(call: Callable[[], Any], name: str) -> Future[Any]:
    """Begin a call on a thread of its own, in the caller's precision; when the future is done, so are its arrays."""
    future: Future[Any] = Future()
    precision = jax.dtypes.canonicalize_dtype(float) == np.float64

    def work() -> None:
        try:
            with jax.enable_x64(precision):
                future.set_result(jax.block_until_ready(call()))
        except BaseException as error:  # raised again where somebody waits for it
            future.set_exception(error)

    Thread(target=work, daemon=True, name=f"pseudo-extended: {name}").start()
    return future


def watched(futures: Sequence[Future[Any]], name: str) -> list[Any]:
    """The results, when they are there; a sentence on stderr each time that nothing has moved for long."""
    finished(futures, name)
    return [future.result() for future in futures]


def finished(futures: Sequence[Future[Any]], name: str) -> None:
    """Wait until all have a result or an error."""
    watch = Watch(name)
    while wait(futures, timeout=min(1.0, watch.patience / 4)).not_done:
        watch.look()


class Watch:
    """Looks at the processor time of the process, which a program that works or is compiled uses up."""

    def __init__(self, name: str, patience: float | None = None) -> None:
        self.name = name
        self.patience = float(os.environ.get("PSEUDO_EXTENDED_PATIENCE", PATIENCE)) if patience is None else patience
        self._rest()

    def look(self) -> None:
        """Look whether anything has moved; call it now and then."""
        now, used = time.monotonic(), time.process_time()
        if used - self.used > IDLE * self.patience:
            self._rest()
        elif now - self.since > self.patience:
            sys.stderr.write(f"pseudo-extended: {stuck(self.name, now - self.since)}\n")
            sys.stderr.flush()
            self.patience *= 2
            self._rest()

    def _rest(self) -> None:
        self.since, self.used = time.monotonic(), time.process_time()


def stuck(name: str, seconds: float) -> str:
    """What to say, and what to do.

    >>> print(stuck("warm-up and draws", 60.0))
    warm-up and draws: no progress for 60 s, and no processor time used. A function called in Python that waits for
    something would explain it; otherwise press Ctrl-C (twice), try a newer JAX, and report it.
    """
    return (
        f"{name}: no progress for {seconds:.0f} s, and no processor time used. A function called in Python that waits "
        "for something would explain it; otherwise press Ctrl-C (twice), try a newer JAX, and report it."
    )
