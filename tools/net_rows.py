"""The rows of the net: every method on several kinds of target, in memory and through a store, in small runs.

Only the public API is used, so that the same rows run before and after a change of the code behind it.
"""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import pseudo_extended as pe

RUN = {"draws": 30, "warmup": 60, "chains": 2, "seed": 5, "progress": False}

MEANS = np.array([[-2.0, 0.0], [2.0, 1.0], [0.0, 4.0]])
HEIGHTS = np.array([-1.9, -2.2, 2.1, 1.8, 2.3, -2.0])


def mixture(x):
    """Three narrow normals in the plane."""
    return jax.nn.logsumexp(-0.5 * jnp.sum((x - MEANS) ** 2, axis=1) / 0.09)


def numpy_mixture(x):
    """The same density in NumPy."""
    return float(np.logaddexp.reduce(-0.5 * np.sum((x - MEANS) ** 2, axis=1) / 0.09))


def numpy_slope(x):
    """The gradient of `numpy_mixture`."""
    log_terms = -0.5 * np.sum((x - MEANS) ** 2, axis=1) / 0.09
    shares = np.exp(log_terms - log_terms.max())
    return -(shares[:, None] * (x - MEANS)).sum(axis=0) / shares.sum() / 0.09


def plain() -> tuple[Any, Any]:
    """A JAX function and a place to start."""
    return mixture, np.zeros(2)


def split() -> tuple[Any, Any]:
    """A mixture model with a bounded scale, labels, and a prior that can be sampled."""

    def log_prior(p):
        return jnp.sum(-0.5 * (p["centre"] / 5) ** 2 - jnp.log(5.0)) - jnp.log(2 * jnp.pi) - p["scale"]

    def log_likelihood(p):
        z = (HEIGHTS[:, None] - p["centre"]) / p["scale"]
        return jnp.sum(jax.nn.logsumexp(-0.5 * z**2, axis=1) - jnp.log(p["scale"]))

    def sample_prior(key):
        for_centre, for_scale = jax.random.split(key)
        return {"centre": 5 * jax.random.normal(for_centre, (2,)), "scale": jax.random.exponential(for_scale)}

    example = {"centre": np.array([1.0, -1.0]), "scale": 1.0}
    target = pe.Target(
        log_prior=log_prior,
        log_likelihood=log_likelihood,
        sample_prior=sample_prior,
        example=example,
        bounds={"scale": (0, None)},
        dims={"centre": ["group"]},
        coords={"group": ["first", "second"]},
    )
    return target, example


def pymc() -> tuple[Any, Any]:
    """The mixture model in PyMC, which finds its own start."""
    import pymc as pm  # only the rows of this target need it

    with pm.Model(coords={"group": ["first", "second"]}) as model:
        centre = pm.Normal("centre", 0, 5, dims="group")
        width = pm.HalfNormal("width", 2)
        pm.NormalMixture("y", w=[0.5, 0.5], mu=centre, sigma=width, observed=HEIGHTS)
    return model, None


def numpy_plain() -> tuple[Any, Any]:
    """A NumPy function without a gradient."""
    return numpy_mixture, np.zeros(2)


def numpy_gradient() -> tuple[Any, Any]:
    """A NumPy function with its gradient."""
    return pe.Target(pe.from_numpy(numpy_mixture, numpy_slope), np.zeros(2)), np.zeros(2)


INSTRUMENTS: dict[str, Callable[[], Any]] = {
    "tempered": lambda: pe.Tempered(0.05),
    "fixed": lambda: pe.Fixed(0.2),
    "ladder": lambda: pe.Ladder([0.1, 0.4, 1.0]),
    "stratified": lambda: pe.Stratified(0.05),
    "density": lambda: pe.Density(pe.Normal(0.0, 3.0)),
    "per-particle": lambda: pe.PerParticle([pe.Fixed(0.2), pe.Tempered(0.1), pe.Density(pe.Normal(0.0, 3.0))]),
}
KERNELS: dict[str, Callable[[], Any]] = {
    "hmc": lambda: pe.HMC(3),
    "nuts": lambda: pe.NUTS(5),
    "mala": lambda: pe.MALA(),
    "random-walk": lambda: pe.RandomWalk(),
    "cycle": lambda: pe.Cycle([pe.MALA(), pe.RandomWalk()]),
    "mixture": lambda: pe.Mixture([pe.HMC(2), pe.RandomWalk()], [0.3, 0.7]),
}
BETAS = [0.1, 0.4, 1.0]


def _methods() -> dict[str, Callable[[], Any]]:
    """Every method by name, made when its row runs."""
    made: dict[str, Callable[[], Any]] = {"default": lambda: None}
    for name, kernel in KERNELS.items():
        made[f"plain-{name}"] = lambda kernel=kernel: pe.Plain(kernel())
        made[f"extended-tempered-{name}"] = lambda kernel=kernel: pe.PseudoExtended(pe.Tempered(0.05), kernel(), 3)
    for name, instrument in INSTRUMENTS.items():
        for kernel in ("hmc", "nuts"):
            made[f"extended-{name}-{kernel}"] = lambda instrument=instrument, kernel=kernel: pe.PseudoExtended(
                instrument(), KERNELS[kernel](), 3
            )
    return made | {
        "plain-hmc-dense": lambda: pe.Plain(pe.HMC(3), metric="dense"),
        "extended-fixed-hmc-dense": lambda: pe.PseudoExtended(pe.Fixed(0.2), pe.HMC(3), 2, metric="dense"),
        "gibbs-own-base": lambda: pe.AdaptivePseudoExtended(3, base="target"),
        "gibbs-hmc": lambda: pe.AdaptivePseudoExtended(3, pe.HMC(3)),
        "gibbs-nuts-ladder": lambda: pe.AdaptivePseudoExtended(
            3, pe.NUTS(4), pe.Ladder(BETAS), base="target", metric="diagonal"
        ),
        "gibbs-mala": lambda: pe.AdaptivePseudoExtended(3, pe.MALA()),
        "gibbs-random-walk": lambda: pe.AdaptivePseudoExtended(2, pe.RandomWalk(), pe.Fixed(0.2), base="target"),
        "parallel-hmc": lambda: pe.ParallelTempering(BETAS, pe.HMC(3)),
        "parallel-nuts-dense": lambda: pe.ParallelTempering(BETAS, pe.NUTS(4), metric="dense"),
        "parallel-random": lambda: pe.ParallelTempering(
            BETAS, pe.RandomWalk(), swaps="random_pair", swap_probability=0.5, adapt_betas=False
        ),
        "simulated-hmc": lambda: pe.SimulatedTempering(BETAS, pe.HMC(3)),
        "simulated-mala": lambda: pe.SimulatedTempering(BETAS, pe.MALA()),
        "annealed-hmc": lambda: pe.AnnealedImportance("linear", pe.HMC(2), num_steps=8),
        "annealed-random-walk": lambda: pe.AnnealedImportance("sigmoidal", pe.RandomWalk(), num_steps=8),
        "equi-energy": lambda: pe.EquiEnergy([-1, 1, 3], [1.0, 3.0, 9.0], burn_in=10, head_start=10, ring_capacity=50),
        "repelling": lambda: pe.RepellingAttracting(0.5),
        "continuous-joint": lambda: pe.ContinuousTempering("joint", pe.HMC(3)),
        "continuous-gibbs": lambda: pe.ContinuousTempering("gibbs", pe.NUTS(4)),
    }


METHODS = _methods()
WITH_BASE = ("gibbs-own-base", "annealed-hmc", "annealed-random-walk", "continuous-joint", "continuous-gibbs")
"""Methods that need a base: on the plain function they run on `based`."""
ON_SPLIT = [name for name in METHODS if name.split("-")[-1] not in ("mala", "cycle", "mixture")]
ON_PYMC = ("default", "plain-nuts", "extended-tempered-nuts", "gibbs-own-base", "parallel-hmc", "simulated-hmc")
ON_NUMPY = ("plain-random-walk", "extended-tempered-random-walk", "equi-energy", "repelling")
ON_NUMPY_GRADIENT = ("default", "plain-hmc", "extended-tempered-nuts", "parallel-hmc")
STORED = ("default", "plain-hmc", "extended-tempered-nuts", "parallel-hmc", "annealed-hmc")


def based() -> tuple[Any, Any]:
    """The plain function with a normal base."""
    return pe.Target(mixture, np.zeros(2), base=pe.Normal(0.0, 3.0)), np.zeros(2)


def _sampled(target: Callable[[], tuple[Any, Any]], method: str) -> pe.Result:
    density, init = target()
    return pe.sample(density, init, method=METHODS[method](), **RUN)


def _resumed(target: Callable[[], tuple[Any, Any]], method: str) -> pe.Result:
    """Stop a run in warm-up, resume it, and read it back."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "run.zarr")
        density, init = target()
        stop = {"callback": lambda run: run.status.done > 0}
        with contextlib.suppress(RuntimeError):  # it has no draws yet
            pe.sample(density, init, method=METHODS[method](), store=path, **stop, **RUN)
            raise AssertionError("the run came to its draws before it could be stopped")
        pe.resume(path, density, progress=False)
        return pe.load(path, density)


def _extended(target: Callable[[], tuple[Any, Any]], method: str) -> pe.Result:
    """Extend a run that is finished, twice, in chunks of another size."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "run.zarr")
        density, init = target()
        pe.sample(density, init, method=METHODS[method](), store=path, **RUN)
        pe.extend(path, density, 5, progress=False, chunk=3)
        return pe.extend(path, density, 10, progress=False)


def _rows() -> dict[str, Callable[[], pe.Result]]:
    cells = [("plain", based if name in WITH_BASE else plain, name) for name in METHODS]
    cells += [("split", split, name) for name in ON_SPLIT]
    cells += [("pymc", pymc, name) for name in ON_PYMC]
    cells += [("numpy", numpy_plain, name) for name in ON_NUMPY]
    cells += [("numpy-gradient", numpy_gradient, name) for name in ON_NUMPY_GRADIENT]
    rows: dict[str, Callable[[], pe.Result]] = {
        f"{kind}/{name}": lambda target=target, name=name: _sampled(target, name) for kind, target, name in cells
    }
    for name in STORED:
        target = based if name in WITH_BASE else plain
        rows[f"resumed/{name}"] = lambda target=target, name=name: _resumed(target, name)
        rows[f"extended/{name}"] = lambda target=target, name=name: _extended(target, name)
    rows["resumed/split-default"] = lambda: _resumed(split, "default")
    return rows


ROWS = _rows()
"""What to run, by name: kind of target or of run, and method."""
