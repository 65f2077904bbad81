"""An exact test of whether a kernel leaves a distribution invariant, for the library's kernels and for yours.

Start from exact draws, apply the kernel a few times, and compare with fresh exact draws. A correct kernel changes
nothing, whatever its step size; a wrong Jacobian, weight or acceptance test shifts some statistic. There is no warm-up,
no convergence and no tolerance in it, only the false-alarm rate of a two-sample test (Geweke 2004; Pigeons.jl).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended import checks
from pseudo_extended.precision import in_double_precision

Step = Callable[[Key[Array, ""], Float[Array, " dim"]], Float[Array, " dim"]]
ExactSampler = Callable[[np.random.Generator, int], Float[np.ndarray, "draw dim"]]
Statistics = Callable[[Float[Array, " dim"]], Float[Array, " statistic"]]


class InvarianceReport(NamedTuple):
    """The outcome of a test of invariance."""

    p_values: Float[np.ndarray, " statistic"]
    """Two-sample Kolmogorov-Smirnov, one for each statistic."""
    moved: float
    """The share of draws that the kernel moved; a kernel that stands still leaves everything invariant."""

    @property
    def p_value(self) -> float:
        """The smallest p-value with Bonferroni's correction: a false alarm below α has probability at most α."""
        return float(min(1.0, np.min(self.p_values) * len(self.p_values)))

    def passes(self, alpha: float = 1e-4, min_moved: float = 0.2) -> bool:
        """Whether nothing changed, and the kernel moved enough for that to mean something."""
        return self.p_value >= alpha and self.moved >= min_moved


@in_double_precision
def check_invariance(
    step: Step,
    exact: ExactSampler,
    *,
    statistics: Statistics | None = None,
    num_draws: int = 10_000,
    num_steps: int = 3,
    seed: int = 0,
) -> InvarianceReport:
    """Test whether `step` leaves the distribution that `exact` draws from invariant.

    Args:
        step: One move, a JAX function of a random key and a state vector.
        exact: Independent draws: a function of a NumPy generator and their number.
        statistics: Numbers to compare, a JAX function of a state; the coordinates themselves unless given. Give the
            log density, products and weights as well: a wrong kernel may leave each coordinate's distribution as it is.
        num_draws: States to move, and fresh ones to compare with.
        num_steps: Moves of each.
        seed: For everything.

    >>> import jax.numpy as jnp
    >>> def metropolis(key, x):
    ...     key_noise, key_accept = jax.random.split(key)
    ...     y = x + jax.random.normal(key_noise, x.shape)
    ...     return jnp.where(jnp.log(jax.random.uniform(key_accept)) < 0.5 * (x @ x - y @ y), y, x)
    >>> check_invariance(metropolis, lambda rng, size: rng.normal(size=(size, 1))).passes()
    True
    >>> check_invariance(metropolis, lambda rng, size: rng.normal(size=(size, 1)) * 1.5).passes()
    False
    """
    num_draws = checks.integer("num_draws", num_draws, minimum=100)
    num_steps = checks.integer("num_steps", num_steps, minimum=1)
    rng = np.random.default_rng(checks.integer("seed", seed, minimum=0))
    for name, given in (("step", step), ("exact", exact), ("statistics", statistics)):
        if name != "statistics" or given is not None:
            checks.function(f"{name} of check_invariance", given)
    before, fresh = (_exact_draws(exact, rng, num_draws) for _ in range(2))
    key = jax.random.key(seed, impl="threefry2x32")
    _check_vector("step", lambda state: step(key, state), before[0], before.shape[1])
    if statistics is not None:
        _check_vector("statistics", statistics, before[0], None)
    measure = jax.jit(jax.vmap(statistics if statistics is not None else lambda state: state))

    def move(key: Any, state: Any) -> Any:
        return jax.lax.fori_loop(0, num_steps, lambda i, now: step(jax.random.fold_in(key, i), now), state)

    keys = jax.random.split(key, num_draws)
    after = np.asarray(jax.jit(jax.vmap(move))(keys, before))
    seen, expected = np.asarray(measure(after)), np.asarray(measure(fresh))
    if not np.all(np.isfinite(seen)):
        return InvarianceReport(np.zeros(seen.shape[1]), 0.0)
    from scipy.stats import ks_2samp  # importing it takes a second

    p_values = np.array([ks_2samp(a, b)[1] for a, b in zip(seen.T, expected.T, strict=True)])
    return InvarianceReport(p_values, float(np.mean(np.any(after != before, axis=1))))


def _exact_draws(exact: ExactSampler, rng: np.random.Generator, num_draws: int) -> Float[np.ndarray, "draw dim"]:
    draws = checks.float_array("the value of exact of check_invariance", exact(rng, num_draws))
    if draws.ndim != 2 or len(draws) != num_draws or draws.shape[1] == 0:
        raise ValueError(
            f"exact of check_invariance must return {num_draws} states, shape ({num_draws}, dim); got {draws.shape}."
        )
    return draws


def _check_vector(name: str, function: Callable[[Any], Any], state: np.ndarray, length: int | None) -> None:
    """Refuse a step or statistics that do not map a state to a vector of floats."""
    expected = "a vector" if length is None else f"a state, a vector of length {length}"
    values: list[Any] = []
    # Traced and not run: one operation after the other would take longer than the compiled test itself.
    jax.eval_shape(lambda state: values.append(function(state)), jnp.asarray(state))
    value = np.zeros(values[0].shape, values[0].dtype) if isinstance(values[0], jax.Array) else values[0]
    is_vector = isinstance(value, (jax.Array, np.ndarray)) and value.ndim == 1 and value.size > 0
    if not is_vector or value.dtype.kind != "f" or (length is not None and value.size != length):
        raise TypeError(f"{name} of check_invariance must return {expected}; got {checks.describe(value)}.")
