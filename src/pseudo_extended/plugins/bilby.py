"""The sampler `pseudo_extended` of bilby: `bilby.run_sampler(likelihood, priors, sampler="pseudo_extended")`.

bilby finds it by the entry point `bilby.samplers`. The priors give the prior transform, so the evidence is bilby's;
parameters whose prior has a periodic boundary wrap around.
"""

from typing import Any

import numpy as np
from bilby.core.prior import Constraint
from bilby.core.sampler.base_sampler import Sampler
from bilby.core.utils import logger

from pseudo_extended.models import from_prior_transform
from pseudo_extended.run.sample import sample


class PseudoExtended(Sampler):
    """The default method of pseudo-extended, as a sampler of bilby.

    Keywords of `run_sampler` that are named in `default_kwargs` go to `pe.sample`. The samples of the result have equal
    weights; `result.meta_data["pseudo_extended"]` has the warnings and notes of the run.
    """

    sampler_name = "pseudo_extended"
    sampling_seed_key = "seed"
    default_kwargs = {  # noqa: RUF012 - bilby copies it
        "draws": 1000,
        "warmup": 1000,
        "chains": 4,
        "seed": None,
        "method": None,
        "target_ess": None,
        "time_limit": None,
        "cores": None,
        "store": None,
        "progress": True,
    }

    def run_sampler(self) -> Any:
        """Sample, and fill bilby's result."""
        names = list(self.search_parameter_keys)
        wraps = [name for name in names if getattr(self.priors[name], "boundary", None) == "periodic"]
        target = from_prior_transform(self._log_likelihood, self._transform, names=names, periodic=wraps or None)
        found = sample(target, **self.kwargs)
        rows = found.resample(seed=0)
        self.result.samples = np.column_stack([rows[name].ravel() for name in names])
        self.result.log_likelihood_evaluations = np.array([self._log_likelihood(row) for row in self.result.samples])
        evidence = found.log_evidence
        self.result.log_evidence = float(evidence.value)
        self.result.log_evidence_err = float(evidence.standard_error)
        if self.use_ratio:
            self.result.log_bayes_factor = self.result.log_evidence
        found._shown_modes()  # a mode without draws speaks against the evidence
        doubts = [doubt.code for doubt in found.evidence_doubts]
        if doubts:
            logger.warning(f"pseudo_extended: the log evidence is NOT TO BE TRUSTED ({', '.join(doubts)})")
        said = {
            "notes": list(map(str, found.notes)),
            "warnings": list(map(str, found.warnings)),
            "log_evidence_doubts": " ".join(doubts),
        }
        before: Any = self.result.meta_data
        self.result.meta_data = {**(before or {}), "pseudo_extended": said}
        self.result.num_likelihood_evaluations = int(np.sum(found.statistics["num_evaluations"]))
        return self.result

    def _verify_external_sampler(self) -> None:
        """There is nothing to look for: this module is the sampler."""

    def _transform(self, u: Any) -> np.ndarray:
        return np.asarray(self.prior_transform(np.asarray(u, float)), float)

    def _log_likelihood(self, theta: Any) -> float:
        """Zero density where a constraint between parameters is not met."""
        theta = np.asarray(theta, float)
        if any(isinstance(prior, Constraint) for prior in self.priors.values()):
            position = dict(zip(self.search_parameter_keys, theta, strict=True))
            if not self.priors.evaluate_constraints(position):
                return -np.inf
        return float(self.log_likelihood(theta))
