"""Models that factorise matrices come to their end on two cores, under a limit of time that only a hang reaches."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("matrix_models.py")
LIMIT = 1200
"""Seconds: twenty times what any of them takes on an idle machine."""


def run(model: str) -> str:
    done = subprocess.run([sys.executable, PROGRAM, model], timeout=LIMIT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_curvatures_of_a_gaussian_process_at_many_points():
    run("curvatures")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["factor", "normal", "gaussian_process", "pymc"])
def test_a_model_is_sampled_whole(model):
    assert run(model).endswith("sampled 100")
