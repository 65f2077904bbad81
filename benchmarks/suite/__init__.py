"""Published problems with known answers, and every peer: the suite that `run_suite.py` runs.

A problem is a factory in one of the modules here; a peer is one function in one file of `peers/`.
"""

from suite import controls, exoplanets, fields, needles, normals, shapes, symmetric
from suite.problem import Problem as Problem

FACTORIES = {
    **normals.FACTORIES,
    **shapes.FACTORIES,
    **fields.FACTORIES,
    **symmetric.FACTORIES,
    **needles.FACTORIES,
    **exoplanets.FACTORIES,
    **controls.FACTORIES,
}
"""A function that makes each problem, by name."""


def load(name: str) -> Problem:
    """The problem of this name.

    >>> round(load("many-well-50").log_evidence, 4)
    40.8112
    """
    return FACTORIES[name]()
