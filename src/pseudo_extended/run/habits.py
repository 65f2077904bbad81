"""What users of other libraries write out of habit: their names for our arguments, and their seeds."""

import difflib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pseudo_extended.run.settings import Options

OURS = {
    "tune": "warmup={value}",
    "num_warmup": "warmup={value}",
    "iter_warmup": "warmup={value}",
    "n_tune": "warmup={value}",
    "burn_in": "warmup={value}",
    "burnin": "warmup={value}",
    "random_seed": "seed={value}",
    "rng_key": "seed={value}, which takes a key of JAX too",
    "key": "seed={value}, which takes a key of JAX too",
    "rstate": "seed=, an integer",
    "num_samples": "draws={value}",
    "iter_sampling": "draws={value}",
    "nsteps": "draws={value}",
    "n_samples": "draws={value}",
    "num_chains": "chains={value}",
    "nwalkers": "chains= and the number of pseudo-samples, method=pe.AdaptivePseudoExtended(num_particles={value})",
    "thinning": "thin={value}",
    "thin_by": "thin={value}",
    "progressbar": "progress={value}",
    "progress_bar": "progress={value}",
    "show_progress": "progress={value}",
    "initvals": "init={value}",
    "inits": "init={value}",
    "init_params": "init={value}",
    "initial_params": "init={value}",
    "p0": "init={value}",
    "parallel_chains": "cores={value}",
    "n_jobs": "cores={value}",
    "chain_method": "cores= for threads, or cluster= for a cluster of Dask",
    "pool": "pe.from_numpy(log_density, pool=pool), or cluster=, a dask.distributed.Client",
    "backend": "store=, a directory",
    "step": "method=, such as pe.Plain(pe.NUTS())",
    "sampler": "method=, such as pe.Plain(pe.NUTS())",
    "kernel": "method=pe.Plain(kernel), or pe.AdaptivePseudoExtended(kernel=kernel)",
    "target_accept": "a kernel with target_acceptance={value}: method=pe.AdaptivePseudoExtended(kernel=pe.HMC(4, "
    "target_acceptance={value}))",
    "adapt_delta": "a kernel with target_acceptance={value}: method=pe.AdaptivePseudoExtended(kernel=pe.HMC(4, "
    "target_acceptance={value}))",
    "max_treedepth": "a kernel, pe.NUTS(max_depth={value})",
    "nuts_sampler": "method=, such as pe.Plain(pe.NUTS())",
    "symmetries": "target.with_symmetries([…]), where a model is pe.from_pymc(model) or the like",
    "bounds": "pe.Target(log_density, example, bounds=…)",
    "base": "pe.Target(log_density, example, base=…)",
    "return_inferencedata": "result.to_arviz()",
    "idata_kwargs": "result.to_arviz(log_likelihood=True)",
    "nlive": "method=pe.AdaptivePseudoExtended(num_particles=…) and draws=; there are no live points",
    "dlogz": "target_ess= or draws=: the error of log_evidence is in the result",
}
"""Names of PyMC, NumPyro, Stan, emcee, BlackJAX and dynesty, and of arguments of a target; and what is written here."""


def refuse_other_names(given: dict[str, Any]) -> None:
    """Refuse arguments that are not ours, with the name that is.

    >>> refuse_other_names({"tune": 500})
    Traceback (most recent call last):
    TypeError: pe.sample has no argument tune; write warmup=500.
    """
    for name, value in given.items():
        if name in OURS:
            shown = repr(value) if isinstance(value, (int, float, bool, str)) else "…"
            raise TypeError(f"pe.sample has no argument {name}; write {OURS[name].replace('{value}', shown)}.")
        near = difflib.get_close_matches(name, [*_names(), "init"], n=1)
        hint = f"did you mean {near[0]}?" if near else f"it takes init, {', '.join(_names())}"
        raise TypeError(f"pe.sample has no argument {name}; {hint.rstrip('?')}.")


def seed_from(seed: Any) -> Any:
    """A seed as an integer: a random key of JAX is turned into one, and anything else is left as it is."""
    if isinstance(seed, type) or not hasattr(seed, "dtype"):
        return seed
    dtype = seed.dtype
    if jnp.issubdtype(dtype, jax.dtypes.prng_key) and seed.shape == ():
        words = np.asarray(jax.random.key_data(seed))
    elif isinstance(seed, jax.Array) and dtype == np.uint32 and seed.shape in ((2,), (4,)):
        words = np.asarray(seed)
    else:
        return seed
    number = 0
    for word in words.ravel():
        number = (number << 32) ^ int(word)
    return number % (2**63 - 1)


def _names() -> list[str]:
    return [name for part in reversed(Options.__mro__) for name in getattr(part, "__annotations__", {})] + ["pilots"]
