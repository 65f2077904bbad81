"""Continuously tempered Hamiltonian Monte Carlo of Graham and Storkey (2017), UAI."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from pseudo_extended import checks
from pseudo_extended.kernels import HMC, AbstractKernel, KernelInfo, KernelState, LogDensity
from pseudo_extended.methods.abstract import AbstractPreparedMethod, Chain, Prepared, Statistic, WeightedPoints
from pseudo_extended.methods.joint import adapt_chain, start_chain
from pseudo_extended.pilot.variational import fit_normal
from pseudo_extended.target import Target, zero_if_invalid
from pseudo_extended.target.bases import AbstractBase, Normal
from pseudo_extended.warmup import Stage, WindowedWarmup

NUM_STARTS = 32


class TemperedState(NamedTuple):
    """What the kernel moves, the temperature, and Δ where it is."""

    kernel: KernelState
    """Of (x, logit β), or of x alone at the present β."""
    beta: Float[Array, ""]
    delta: Float[Array, ""]
    """log γ(x) - log γ0(x) - log ζ."""


class ContinuousTempering(AbstractPreparedMethod):
    """One chain that moves x and a temperature β in [0, 1], with joint density ∝ γ0(x)^(1-β) (γ(x)/ζ)^β.

    Given x, β has the density ∝ exp{β Δ(x)}, Δ = log γ - log γ0 - log ζ. Every draw counts with the density of that at
    β = 1, p_1 = Δ/(1 - e^-Δ), whatever its own β: so E[f] is estimated by Σ p_1 f / Σ p_1, and with the density at 0,
    p_0 = Δ/(e^Δ - 1), log Z by log ζ + log Σ p_1 - log Σ p_0 (`result.log_evidence`).

    Args:
        variant: "joint" moves (x, logit β) by the kernel; "gibbs" moves x given β by the kernel, then draws β exactly.
        kernel: Any; HMC with 20 leapfrog steps unless given.
        base: γ0. A base density; or "fit", a normal fitted to the target before the chains start; or None, the
            target's own base if it has one, and else "fit".
        log_zeta: A guess of log Z (to within a few units, or β stays at one end); fitted unless given.
        step_size: Fixed, with a unit metric; tuned in warm-up, with the metric, unless given.
        fit_radius: The fit starts from points uniformly within this distance of where the first chain starts, in each
            coordinate: it should reach all modes.
        metric: "diagonal" or "dense", for what is tuned.

    >>> import pseudo_extended as pe
    >>> pe.ContinuousTempering("gibbs", pe.HMC(10)).describe()
    'continuous tempering, gibbs, HMC'
    """

    variant: str = eqx.field(static=True)
    kernel: AbstractKernel
    base: AbstractBase | None
    """None for the target's own, or for one that is not fitted yet."""
    log_zeta: Float[np.ndarray, ""] | None
    fits_base: bool = eqx.field(static=True)
    step_size: float | None = eqx.field(static=True)
    fit_radius: float = eqx.field(static=True)
    warmup: WindowedWarmup

    def __init__(
        self,
        variant: str = "joint",
        kernel: AbstractKernel | None = None,
        *,
        base: AbstractBase | str | None = None,
        log_zeta: float | None = None,
        step_size: float | None = None,
        fit_radius: float = 2.0,
        metric: str = "diagonal",
    ):
        self.variant = checks.choice("variant", variant, ("joint", "gibbs"))
        self.kernel = checks.instance(
            "kernel", HMC(20) if kernel is None else kernel, AbstractKernel, "a kernel such as pe.HMC()"
        )
        self.fits_base = isinstance(base, str) and base == "fit"
        self.base = None if base is None or self.fits_base else _base(base)
        self.log_zeta = None if log_zeta is None else np.asarray(checks.real("log_zeta", log_zeta))
        self.step_size = None if step_size is None else checks.real("step_size", step_size, low=0, closed="(]")
        self.fit_radius = checks.real("fit_radius", fit_radius, low=0)
        self.warmup = WindowedWarmup(metric)

    @classmethod
    def graham_2017(cls, variant: str = "joint") -> "ContinuousTempering":
        """The setting of the authors' code: 20 leapfrog steps of size 0.5 without jitter, and a variational base.

        >>> import pseudo_extended as pe
        >>> pe.ContinuousTempering.graham_2017("gibbs").step_size
        0.5
        """
        return cls(variant, HMC(20, jitter=0), base="fit", step_size=0.5)

    @property
    def needs_gradient(self) -> bool:
        """True: the fit of the base uses the gradient even if the kernel does not."""
        return True

    def check(self, target: Target) -> None:
        """Require a base that fits the target's dimension."""
        if self.base is not None:
            self.base.check("base", target.dim)

    def covers(self, target: Target, x: Float[Array, "particle d"]) -> Bool[Array, " particle"]:
        """Whether the base is positive."""
        return jnp.isfinite(jax.vmap(self.tempered(target).path_point)(x).log_base)

    def prepare(
        self, key: Key[Array, ""], target: Target, x: Float[np.ndarray, "chain particle d"], say: Callable[[str], None]
    ) -> Prepared:
        """Fit the base and ζ, unless both are given."""
        needs_base = self.base is None and (self.fits_base or target.base is None)
        if not needs_base and self.log_zeta is not None:
            return Prepared(self, x, ())
        say("fitting a normal to the target")
        key_starts, key_fit = jax.random.split(key)
        shift = np.asarray(jax.random.uniform(key_starts, (NUM_STARTS, target.dim), float, -1, 1))
        # From the first chain alone, so that the fit does not depend on how many there are.
        fit = fit_normal(key_fit, target.log_target, x[0, 0] + self.fit_radius * shift)
        log_zeta = np.asarray(fit.log_mass) if self.log_zeta is None else self.log_zeta
        base = Normal(fit.mean, fit.scale) if needs_base else self.base
        method = eqx.tree_at(
            lambda method: (method.base, method.log_zeta), self, (base, log_zeta), is_leaf=lambda leaf: leaf is None
        )
        notes = [f"log ζ = {float(log_zeta):.2f}, by normal fits from {NUM_STARTS} starts."]
        if needs_base:
            notes.append(f"the base is a normal that covers them, with mean {_short(fit.mean)}.")
        return Prepared(method, x, tuple(notes))

    def init(self, key: Key[Array, ""], target: Target, x: Float[Array, "particle d"]) -> Chain:
        """Start at the one given point, with β uniform."""
        key_beta, key_step = jax.random.split(key)
        beta = jax.random.uniform(key_beta, dtype=float, minval=0.05, maxval=0.95)
        if self.variant == "joint":
            position, log_density = jnp.append(x[0], jnp.log(beta) - jnp.log1p(-beta)), self.log_joint(target)
        else:
            position, log_density = x[0], self.log_given_beta(target, beta)
        chain = start_chain(key_step, self.kernel, self.warmup, log_density, position)
        if self.step_size is not None:
            step_size = jnp.full_like(chain.parameters.step_size, self.step_size)
            chain = chain._replace(parameters=chain.parameters._replace(step_size=step_size))
        return chain._replace(state=TemperedState(chain.state, beta, self.parts(target, x[0])[1]))

    def step(self, key: Key[Array, ""], target: Target, chain: Chain) -> tuple[TemperedState, KernelInfo]:
        """The kernel moves (x, β) together, or x; in the latter case β is drawn next."""
        state: TemperedState = chain.state
        if self.variant == "joint":
            moved, info = self.kernel.step(key, self.log_joint(target), state.kernel, chain.parameters)
            _, delta = self.parts(target, moved.position[:-1])
            new = TemperedState(moved, jax.nn.sigmoid(moved.position[-1]), delta)
        else:
            key_move, key_beta = jax.random.split(key)
            log_density = self.log_given_beta(target, state.beta)
            moved, info = self.kernel.step(key_move, log_density, state.kernel, chain.parameters)
            new = self.at_new_beta(key_beta, target, moved)
        return new, info._replace(num_evaluations=info.num_evaluations + 1)  # one more for Δ

    def at_new_beta(self, key: Key[Array, ""], target: Target, moved: KernelState) -> TemperedState:
        """β drawn given x, and the kernel's state there: one evaluation gives Δ, and then the gradient for any β."""
        (log_base, delta), pull_back = jax.vjp(lambda x: self.parts(target, x), moved.position)
        beta = draw_beta(key, delta)
        gradient = None if moved.gradient is None else pull_back((jnp.ones(()), beta))[0]
        return TemperedState(KernelState(moved.position, log_base + beta * delta, gradient), beta, delta)

    def adapt(self, target: Target, chain: Chain, stage: Stage, info: KernelInfo) -> Chain:
        """Step size and metric, unless the step is fixed."""
        del target
        if self.step_size is not None:
            return chain
        adapted = adapt_chain(self.kernel, self.warmup, chain._replace(state=chain.state.kernel), stage, info)
        return adapted._replace(state=chain.state)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The statistics of `points`."""
        return (
            Statistic("lp"),
            Statistic("beta", ("particle",)),
            Statistic("evidence_top", ("factor",)),
            Statistic("evidence_bottom", ("factor",)),
        )

    def points(self, target: Target, state: TemperedState) -> WeightedPoints:
        """The point, which counts with the density of β = 1 given it."""
        del target
        log_p0, log_p1 = log_end_densities(state.delta)
        statistics = {
            "lp": state.kernel.log_density,
            "beta": state.beta[None],
            "evidence_top": (log_p1 + jnp.asarray(self.log_zeta))[None],
            "evidence_bottom": log_p0[None],
        }
        d = state.kernel.position.shape[0] - (self.variant == "joint")
        return WeightedPoints(state.kernel.position[None, :d], jnp.zeros(1), statistics, log_importance=log_p1)

    def describe(self) -> str:
        """Name the method and its main settings, for tables and reports."""
        return f"continuous tempering, {self.variant}, {type(self.kernel).__name__}"

    def tempered(self, target: Target) -> Target:
        """The target with the base of the path: this method's, or the target's own."""
        return target if self.base is None else target.with_base(self.base)

    def parts(self, target: Target, x: Float[Array, " d"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """log γ0 and Δ = log γ - log γ0 - log ζ."""
        assert self.log_zeta is not None, "prepare comes first"
        path = self.tempered(target).path_point(x)
        return path.log_base, path.delta - self.log_zeta

    def log_given_beta(self, target: Target, beta: Float[Array, ""]) -> LogDensity:
        """log density of x given β."""

        def log_density(x: Float[Array, " d"]) -> Float[Array, ""]:
            log_base, delta = self.parts(target, x)
            return zero_if_invalid(log_base + beta * delta)

        return log_density

    def log_joint(self, target: Target) -> LogDensity:
        """log density of (x, u), β = σ(u), with the Jacobian β(1 - β)."""

        def log_density(flat: Float[Array, " d_and_one"]) -> Float[Array, ""]:
            u = flat[-1]
            log_base, delta = self.parts(target, flat[:-1])
            return zero_if_invalid(log_base + jax.nn.sigmoid(u) * delta + log_jacobian(u))

        return log_density


def log_jacobian(u: Float[Array, ""]) -> Float[Array, ""]:
    """The log Jacobian of the map from u to β, log dβ/du."""
    return jax.nn.log_sigmoid(u) + jax.nn.log_sigmoid(-u)


def draw_beta(key: Key[Array, ""], delta: Float[Array, ""]) -> Float[Array, ""]:
    """A draw from the density ∝ exp(β Δ) on [0, 1], by inversion from the end where it is higher."""
    uniform, rate = jax.random.uniform(key, dtype=float), jnp.abs(delta)
    safe = jnp.maximum(rate, 1e-9)
    distance = jnp.where(rate < 1e-9, uniform, -jnp.log1p(uniform * jnp.expm1(-safe)) / safe)
    return jnp.where(delta < 0, distance, 1 - distance)


def log_end_densities(delta: Float[Array, "*batch"]) -> tuple[Float[Array, "*batch"], Float[Array, "*batch"]]:
    """log p_0 and log p_1: the density ∝ exp(β Δ) on [0, 1] at its two ends.

    >>> [round(float(part), 3) for part in log_end_densities(jnp.asarray(-2.0))]
    [0.839, -1.161]
    """
    rate = jnp.abs(delta)
    safe = jnp.maximum(rate, 1e-9)
    log_higher = jnp.where(rate < 1e-9, 0.5 * rate, jnp.log(safe) - jnp.log(-jnp.expm1(-safe)))
    return log_higher - jnp.maximum(delta, 0.0), log_higher + jnp.minimum(delta, 0.0)


def _base(given: Any) -> AbstractBase:
    if isinstance(given, str):
        raise ValueError(f'base must be a base density such as pe.Normal(), or "fit"; got {given!r}.')
    return checks.instance("base", given, AbstractBase, 'a base density such as pe.Normal(), or "fit"')


def _short(numbers: Float[np.ndarray, " d"]) -> str:
    return f"({', '.join(f'{number:.3g}' for number in numbers[:4])}{', …' if len(numbers) > 4 else ''})"
