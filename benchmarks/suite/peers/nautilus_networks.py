"""nautilus: importance nested sampling with neural networks."""

import numpy as np
from nautilus import Sampler  # pyright: ignore[reportMissingImports]

from suite.answer import Answer, weighted
from suite.on_host import OnHost
from suite.problem import Problem


def run(problem: Problem, seed: int) -> Answer:
    """The defaults, with the exploration discarded, as the documentation says for unbiased results."""
    host = OnHost(problem)
    sampler = Sampler(
        host.transform_many,
        host.many,
        n_dim=problem.dim,
        periodic=np.array(problem.periodic) if problem.periodic else None,
        vectorized=True,
        pass_dict=False,
        seed=seed,
    )
    sampler.run(discard_exploration=True)
    points, log_weights, _ = sampler.posterior()
    effective = float(sampler.n_eff)
    return weighted(
        problem,
        points,
        log_weights,
        evaluations=host.count,
        log_evidence=float(sampler.log_z),
        log_evidence_error=1 / np.sqrt(effective),
        notes=["the error of log Z is 1/√n_eff, as its documentation says"],
    )
