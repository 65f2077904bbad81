"""What CONTRIBUTING says about the code is true: files exist, and draws take the way it describes."""

import re
import traceback
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pseudo_extended"
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
METHODS = {
    "the paper's method": pe.PseudoExtended(pe.Tempered(0.1), pe.HMC(2), 2),
    "the default": pe.AdaptivePseudoExtended(2, base="target", instrument=pe.Tempered(0.1)),
}


def test_every_path_exists():
    named = re.findall(r"`([\w/.-]+(?:/|\.py|\.md|\.json|\.pyi))`", TEXT)
    assert len(named) > 30
    for name in named:
        assert (ROOT / name).exists() or (SOURCE / name).exists(), name


@pytest.mark.parametrize("name", METHODS)
def test_the_way_of_a_draw(name):
    """The files on the stack, when the density is traced for the draws, are those of the list, in its order."""
    [line] = re.findall(rf"^- {name}: (.*(?:\n  .*)*)", TEXT, re.MULTILINE)
    way = re.findall(r"`([\w/.]+)`", line)
    assert len(way) >= 8
    stacks = []

    def log_density(x):
        frames = [Path(frame.filename) for frame in traceback.extract_stack()]
        stacks.append([path.relative_to(SOURCE).as_posix() for path in frames if path.is_relative_to(SOURCE)])
        return -0.5 * jnp.sum(x**2)

    pe.sample(log_density, np.zeros(1), method=METHODS[name], draws=2, warmup=2, chains=1, seed=0, progress=False)
    assert any(follows(stack, way) for stack in stacks)


def follows(stack: list[str], way: list[str]) -> bool:
    """Whether the stack passes the places of the way in order, files or folders."""
    left = iter(stack)
    return all(any(file == place or (place.endswith("/") and file.startswith(place)) for file in left) for place in way)


def test_a_way_that_leaves_out_a_floor_is_noticed():
    assert follows(["a.py", "b/c.py", "d.py"], ["a.py", "b/", "d.py"])
    assert not follows(["a.py", "d.py"], ["a.py", "b/", "d.py"])
