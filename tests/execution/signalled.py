"""A run that sends itself a signal in a phase: `python signalled.py MODEL PHASE SIGNAL STORE`, "" for no store.

Phases are those of `press`, or the beginning of what the run says that it does, such as "looking".
"""

import os
import signal
import sys

import numpy as np

import pseudo_extended as pe
from pseudo_extended.run import job
from pseudo_extended.run.advance import LaneProgram
from pseudo_extended.run.progress import Silent

PLACES = {
    "preparing": (job, "prepare"),
    "compiling": (job, "_workers"),
    "warm-up": (LaneProgram, "advance"),
    "draws": (LaneProgram, "advance"),
    "finishing": (job.Recorder, "finish"),
    "summary": (job, "build_result"),
}
RUN = {"draws": 400, "warmup": 200, "chains": 2, "seed": 3, "progress": False}


def is_phase(phase, arguments):
    """Whether a lane is where it should be: other places have one phase each."""
    if phase not in ("warm-up", "draws"):
        return True
    segment = arguments[-1]
    return segment.warming == (phase == "warm-up")


def press(phase, number, patch=setattr):
    """Send this process a signal at the beginning of a phase, once."""
    sent = []

    def once():
        if not sent:
            sent.append(number)
            os.kill(os.getpid(), number)

    def wrap(function):
        def wrapped(*arguments, **options):
            if is_phase(phase, arguments):
                once()
            return function(*arguments, **options)

        return wrapped

    if phase == "finishing":
        for kind in (job.Memory, job.Stored):
            patch(kind, "finish", wrap(kind.finish))
    elif phase in PLACES:
        place, name = PLACES[phase]
        patch(place, name, wrap(getattr(place, name)))
    else:
        patch(Silent, "say", lambda self, text: once() if text.startswith(phase) else None)
    return sent


def two_normals(x):
    import jax.numpy as jnp

    return jnp.logaddexp(-0.5 * jnp.sum((x - 2) ** 2), -0.5 * jnp.sum((x + 2) ** 2))


def model(name):
    """A target, and where it starts."""
    if name == "plain":
        return two_normals, np.zeros(2)
    import pymc as pm

    with pm.Model() as made:
        pm.Mixture("x", w=[0.5, 0.5], comp_dists=[pm.Normal.dist(-2, 1), pm.Normal.dist(2, 1)], shape=2)
    return made, None


def sample(name, store, **options):
    """Begin, or go on."""
    target, init = model(name)
    return pe.sample(target, init, store=store, resume=store is not None, **RUN | options)


if __name__ == "__main__":
    _, name, phase, number, store = sys.argv
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever was inherited
    press(phase, int(number))
    result = sample(name, store or None)
    sys.stdout.write(f"{result.num_draws} {result.stopped}\n")
