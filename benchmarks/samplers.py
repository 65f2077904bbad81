"""The samplers that `against_nuts.py` compares, each as a function of a posterior, a number of draws and a seed."""

import resource
import time
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

import pseudo_extended as pe
from counting import Counted
from posteriors import Posterior

CHAINS, WARMUP = 4, 1000


class Sampled(NamedTuple):
    """What a sampler gave."""

    values: Float[np.ndarray, "chain draw particle quantity"]
    weights: Float[np.ndarray, "chain draw particle"]
    evaluations: int
    wall: float
    cpu: float
    notes: list[str]


class Clock:
    """Wall and processor seconds of its block, in all threads."""

    def __enter__(self) -> "Clock":
        self._began = time.perf_counter(), _processor()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = time.perf_counter() - self._began[0], _processor() - self._began[1]


def _processor() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def with_library(posterior: Posterior, method: pe.Plain | None, draws: int | None, seed: int) -> Sampled:
    """The default, or a method of the library."""
    with Clock() as clock:
        result = pe.sample(
            pe.Target(posterior.log_density, posterior.start),
            posterior.start,
            method=method,
            draws=draws,
            chains=CHAINS,
            seed=seed,
            progress=False,
        )
        values = np.asarray(result.map_points(posterior.quantities))
    evaluations = getattr(result, "evaluations", None)
    if evaluations is None:  # the pilot and the warm-up once more, counted
        counted = Counted(posterior.log_density)
        pe.sample(
            pe.Target(counted, posterior.start),
            posterior.start,
            method=method,
            draws=1,
            chains=CHAINS,
            seed=seed,
            progress=False,
        )
        evaluations = counted.count + int(np.sum(result.statistics["num_evaluations"]))
    notes = [*result.notes, *(f"! {sentence}" for sentence in result.warnings)]
    return Sampled(values, result.weights, int(np.sum(evaluations)), clock.wall, clock.cpu, notes)


def starts(posterior: Posterior, seed: int) -> Float[np.ndarray, "chain d"]:
    """Where the chains of other libraries start: as ours do, within 1 of the start."""
    noise = np.random.default_rng([seed, 1]).uniform(-1, 1, size=(CHAINS, posterior.dim))
    return posterior.start + noise


def with_numpyro(posterior: Posterior, draws: int, seed: int, warmup: int = WARMUP, acceptance: float = 0.8) -> Sampled:
    """NumPyro's NUTS in double precision, its chains vectorised; trees of warm-up and draws are counted."""
    import numpyro
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    numpyro.set_platform("cpu")
    with Clock() as clock:
        kernel = NUTS(potential_fn=lambda x: -posterior.log_density(x), target_accept_prob=acceptance)
        mcmc = MCMC(
            kernel,
            num_warmup=warmup,
            num_samples=draws,
            num_chains=CHAINS,
            chain_method="vectorized",
            progress_bar=False,
        )
        first, fields = starts(posterior, seed), ("num_steps", "diverging")
        key = jax.random.key(seed, impl="threefry2x32")
        mcmc.warmup(key, init_params=first, extra_fields=fields, collect_warmup=True)
        steps = int(np.sum(mcmc.get_extra_fields()["num_steps"]))
        state: Any = mcmc.post_warmup_state
        mcmc.run(state.rng_key, extra_fields=fields)
        x = np.asarray(mcmc.get_samples(group_by_chain=True))
    extra = mcmc.get_extra_fields()
    steps += int(np.sum(extra["num_steps"]))
    divergences = int(np.sum(extra["diverging"]))
    return _plain(posterior, x, steps, clock, [f"! {divergences} divergences"] if divergences else [])


def with_nutpie(posterior: Posterior, draws: int, seed: int) -> Sampled:
    """nutpie on the compiled density and gradient."""
    import nutpie  # pyright: ignore[reportMissingImports]
    from nutpie.compiled_pyfunc import from_pyfunc  # pyright: ignore[reportMissingImports]

    jax.config.update("jax_enable_x64", True)
    with Clock() as clock:
        both = jax.jit(jax.value_and_grad(posterior.log_density))
        both(posterior.start)

        def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = both(x)
            return float(value), np.asarray(gradient)

        model = from_pyfunc(
            posterior.dim,
            lambda: evaluate,
            lambda *_: lambda x: {"x": x},
            [np.dtype("float64")],
            [(posterior.dim,)],
            ["x"],
            make_initial_point_fn=lambda seed: (
                posterior.start + np.random.default_rng(seed).uniform(-1, 1, posterior.dim)
            ),
        )
        trace: Any = nutpie.sample(
            model, draws=draws, tune=WARMUP, chains=CHAINS, seed=seed, progress_bar=False, save_warmup=True
        )
        x = np.asarray(trace.posterior["x"])
    steps = sum(int(trace[group]["n_steps"].sum()) for group in ("warmup_sample_stats", "sample_stats"))
    return _plain(posterior, x, steps, clock, [])


def _plain(posterior: Posterior, x: np.ndarray, steps: int, clock: Clock, notes: list[str]) -> Sampled:
    """Draws without weights."""
    quantities = jax.jit(jax.vmap(jax.vmap(posterior.quantities)))
    values = np.asarray(quantities(x))[:, :, None]
    return Sampled(values, np.ones(values.shape[:3]), steps, clock.wall, clock.cpu, notes)
