"""Stan's NUTS inside this process, for the comparison with the paper's target under Stan."""

from types import ModuleType
from typing import Any

from pseudo_extended.models.pystan_services import ServiceRun, run_service
from pseudo_extended.models.pystan_services import build as build

StanRun = ServiceRun


def run_nuts(
    module: ModuleType, data: dict[str, Any], init: dict[str, Any], *, draws: int, warmup: int, seed: int, chain: int
) -> ServiceRun:
    """One chain of Stan's NUTS with its default settings: diagonal metric, depth at most 10, target 0.8."""
    chosen = {"num_samples": draws, "num_warmup": warmup, "random_seed": seed, "chain": chain, "refresh": 0}
    return run_service(module, "hmc_nuts_diag_e_adapt", data, init, chosen)
