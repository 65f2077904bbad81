"""What a first run compiles, counted: XLA's processor time and that of a draw are those of the instructions."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended import compiled
from pseudo_extended.precision import double_precision

MAX_INSTRUCTIONS = 6300
"""Of the optimised program of warm-up and draws: 5,700 with jaxlib 0.12.0.1, of which the loop's body is nearly all."""
MAX_KERNELS = 300
"""Of it, each of which is compiled by itself and started in every draw: 270 with the same."""


def two_normals(x):
    """With a sine in it, of which the gradient is a cosine: so that copies can be counted."""
    heights = jnp.log(0.7) - 0.5 * jnp.sum((x - 3) ** 2), jnp.log(0.3) - 2 * jnp.sum((x + 3) ** 2)
    return jnp.logaddexp(*heights) + 0.01 * jnp.sum(jnp.sin(x))


class EnoughError(Exception):
    """The programs of the chains have been lowered."""


@pytest.fixture(scope="module")
def programs():
    """All programs of a run with the default method, lowered, by name; it ends before the last ones are compiled."""
    found, original = {}, compiled._compile

    def collect(jobs, lowered):
        found.update({job.name: program for job, program in zip(jobs, lowered, strict=True)})
        if any(job.name == "warm-up and draws" for job in jobs):
            raise EnoughError
        return original(jobs, lowered)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_compile", collect)
        with pytest.raises(EnoughError):
            pe.sample(two_normals, np.zeros(10), draws=20, warmup=20, seed=1, progress=False)
    return found


def num_kernels(text):
    """Instructions outside of fused computations and of what is applied to every entry, but those that do nothing."""
    inner = set(re.findall(r"(?:calls|to_apply)=%?([\w.\-]+)", text))
    computations = re.findall(r"^(?:ENTRY )?%?([\w.\-]+) \(.*?\{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    lines = [line for name, body in computations if name not in inner for line in body.splitlines()]
    kinds = [re.search(r" = (?:\(.*?\)|\S+) ([\w\-]+)\(", line) for line in lines]
    nothing = {"parameter", "get-tuple-element", "tuple", "constant", "bitcast", "while", "conditional"}
    return sum(kind is not None and kind[1] not in nothing for kind in kinds)


def test_copies_of_the_density(programs):
    """Each costs a large model seconds: local moves, and one for draws from the base and leaps together."""
    copies = {name: program.as_text().count("stablehlo.sine") for name, program in programs.items()}
    assert copies == {"starting points": 1, "the density": 1, "the start of a chain": 1, "warm-up and draws": 2}


def test_instructions_of_the_loop(programs):
    with double_precision():
        text = programs["warm-up and draws"].compile().as_text()
    assert text.count(" = ") < MAX_INSTRUCTIONS
    assert num_kernels(text) < MAX_KERNELS
