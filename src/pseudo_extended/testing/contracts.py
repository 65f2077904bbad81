"""What every kernel, instrument and method promises, checked on one of the user's own."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from pseudo_extended import checks
from pseudo_extended.extended import ExtendedTarget
from pseudo_extended.instruments import AbstractInstrument
from pseudo_extended.kernels import (
    AbstractKernel,
    KernelInfo,
    KernelParameters,
    KernelState,
    initial_state,
)
from pseudo_extended.methods import AbstractMethod, AbstractPreparedMethod, Chain
from pseudo_extended.precision import in_double_precision
from pseudo_extended.run.sample import sample
from pseudo_extended.target import Target
from pseudo_extended.target.bases import Normal
from pseudo_extended.target.host import said
from pseudo_extended.testing.invariance import InvarianceReport, check_invariance
from pseudo_extended.warmup import stages

DIM = 3
CORRELATED = 0.3 * np.eye(DIM) + 0.7
"""A covariance matrix: with this metric too a kernel must leave every density invariant. So strong a correlation shows
when a factor of it stands in the place of its transpose, with p below 1e-9 for four seeds of four."""
MAX_Z = 5.0
"""Standard errors that an estimate of a run may be off: a false alarm once in a million, for each of six numbers."""


class ContractError(AssertionError):
    """A kernel, instrument or method breaks a promise; the sentence names it and says what came instead."""


@in_double_precision
def check_kernel(
    kernel: AbstractKernel,
    *,
    step_size: float = 0.8,
    metric: Literal["diagonal", "dense"] | None = None,
    seed: int = 0,
) -> InvarianceReport:
    """Check that a kernel keeps its contract, and that it leaves a skewed density in three dimensions invariant.

    Args:
        kernel: The kernel, an instance.
        step_size: The step size of every part, so large that the kernel rejects some of its proposals.
        metric: The metric it is given, "diagonal" or "dense"; both in turn unless given, because the default method
            has a dense one in up to 16 dimensions.
        seed: The seed of all random numbers.

    Returns:
        The report of the last invariance test, which has passed, as has the first. A `ContractError` says in a sentence
        what is wrong.

    >>> import pseudo_extended as pe
    >>> pe.testing.check_kernel(pe.RandomWalk()).passes()
    True
    """
    checks.instance("kernel", kernel, AbstractKernel, "a kernel that derives from pe.kernels.AbstractKernel")
    checks.choice("metric", metric, (None, "diagonal", "dense"))
    name, rates = type(kernel).__name__, kernel.target_acceptance
    _require(
        np.ndim(rates) == 1,
        f"target_acceptance of {name} must be a vector with a rate for each step size, such as np.array([0.4]); "
        f"got {rates}",
    )
    metrics = ("diagonal", "dense") if metric is None else (metric,)
    return [_check_invariance(kernel, each, step_size, seed) for each in metrics][-1]


def _check_invariance(kernel: AbstractKernel, metric: str, step_size: float, seed: int) -> InvarianceReport:
    inverse_mass = jnp.ones(DIM) if metric == "diagonal" else jnp.asarray(CORRELATED)
    parameters = KernelParameters(jnp.full(np.shape(kernel.target_acceptance), step_size), inverse_mass)

    def step(key: Key[Array, ""], x: Float[Array, " d"]) -> tuple[KernelState, KernelInfo]:
        start = initial_state(_log_gumbel, x, gradient=kernel.uses_gradient)
        return kernel.step(key, _log_gumbel, start, parameters)

    name = f"{type(kernel).__name__} with a {metric} metric"
    advice = "; pe.kernels.Metric.from_inverse_mass(parameters.inverse_mass) applies it" if metric == "dense" else ""
    made = _attempt(
        f"step of {name} must be a function (key, log_density, state, parameters) -> (state, info) that JAX can "
        f"trace{advice}",
        lambda: jax.jit(step)(jax.random.key(seed), jnp.array([0.3, -0.2, 0.1])),
    )
    pair: Any = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    _require(
        isinstance(pair[0], KernelState) and isinstance(pair[1], KernelInfo),
        f"step of {name} must return a KernelState and a KernelInfo; "
        f"got {' and '.join(type(each).__name__ for each in pair if each is not None)}",
    )
    shape = jnp.shape(pair[0].position)
    _require(shape == (DIM,), f"position in the state of {name} must keep the shape ({DIM},); got {shape}{advice}")
    _check_step(kernel, *pair)
    report = check_invariance(
        lambda key, x: step(key, x)[0].position,
        lambda rng, size: rng.gumbel(size=(size, DIM)),
        statistics=lambda x: jnp.concatenate([x, (x[:1] * x[1:2]), _log_gumbel(x)[None]]),
        num_draws=5000,
        seed=seed,
    )
    _require(report.moved >= 0.2, f"{name} must move in a step of size {step_size}; {report.moved:.0%} of points moved")
    _require(report.passes(), f"{name} must leave the density invariant; p = {report.p_value:.1e} from exact draws")
    return report


def _log_gumbel(x: Float[Array, " d"]) -> Float[Array, ""]:
    """The log density of independent Gumbel variables: skewed, so that a wrong sign or Jacobian shows."""
    return -jnp.sum(x + jnp.exp(-x))


def _check_step(kernel: AbstractKernel, state: KernelState, info: KernelInfo) -> None:
    name, value = type(kernel).__name__, _log_gumbel(state.position)
    _require(
        bool(jnp.allclose(state.log_density, value, rtol=1e-9)),
        f"log_density in the state of {name} must be that of its position, {value:.6g}; got {state.log_density:.6g}",
    )
    if kernel.uses_gradient:
        _require(
            state.gradient is not None
            and bool(jnp.allclose(state.gradient, jax.grad(_log_gumbel)(state.position), rtol=1e-7)),
            f"gradient in the state of {name} must be that of its position; it is not",
        )
    rates = np.asarray(info.acceptance_rate)
    _require(
        rates.shape == kernel.target_acceptance.shape and bool(np.all(np.isnan(rates) | ((rates >= 0) & (rates <= 1)))),
        f"acceptance_rate of {name} must be in [0, 1] or nan, one for each of target_acceptance; got {rates}",
    )
    _require(int(info.num_evaluations) >= 1, f"num_evaluations of {name} must be at least 1; got 0")


@in_double_precision
def check_instrument(instrument: AbstractInstrument, target: Target | None = None, *, num_particles: int = 4) -> None:
    """Check that an instrument keeps its contract: shapes, temperatures in [0, 1], a finite density and gradient.

    >>> import pseudo_extended as pe
    >>> pe.testing.check_instrument(pe.Tempered(0.1))
    """
    checks.instance(
        "instrument",
        instrument,
        AbstractInstrument,
        "an instrument that derives from pe.instruments.AbstractInstrument",
    )
    target = _normal_target() if target is None else target
    instrument.check(target, num_particles)
    extended, name = ExtendedTarget(target, instrument, num_particles), type(instrument).__name__
    x = jax.random.normal(jax.random.key(0), (num_particles, target.dim), float)
    flat = extended.start(jax.random.key(1), x)
    terms = jax.jit(lambda flat: extended.terms(flat))(flat)
    for part, got in (("log_q", terms.log_q), ("log_weight", terms.log_weight)):
        _require(got.shape == (num_particles,), f"{part} of {name} must have shape ({num_particles},); got {got.shape}")
    betas = np.asarray(extended.betas(flat))
    _require(
        betas.shape == (num_particles,) and bool(np.all(np.isnan(betas) | ((betas >= 0) & (betas <= 1)))),
        f"betas of {name} must be {num_particles} numbers in [0, 1], or nan; got {betas}",
    )
    value, gradient = jax.jit(jax.value_and_grad(lambda flat: extended.log_density(flat)))(flat)
    _require(
        bool(jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))),
        f"the extended density of {name} must be finite with a finite gradient at a draw of a normal; it is not",
    )


@in_double_precision
def check_method(method: AbstractMethod, target: Target | None = None, *, draws: int = 1000, seed: int = 0) -> None:
    """Check that a method keeps its contract, and that its estimates agree with a normal density's moments.

    Without `target`, the method samples independent standard normals in three dimensions, and the weighted means of x
    and x² must be within five standard errors of the truth. With a target of yours, only the contract is checked.

    >>> import pseudo_extended as pe
    >>> pe.testing.check_method(pe.Plain(pe.HMC(5)))
    """
    checks.instance("method", method, AbstractMethod, "a method that derives from pe.methods.AbstractMethod")
    problem = _normal_target() if target is None else target
    if not isinstance(method, AbstractPreparedMethod):  # which cannot start before it has chosen
        _check_members(method, problem)
    if target is not None:
        return
    options: Any = {"draws": draws, "warmup": 500, "chains": 4, "seed": seed, "progress": False}
    result = sample(problem, jnp.zeros(DIM), method=method, **options)
    name = type(method).__name__
    for power, truth in ((1, 0.0), (2, 1.0)):
        found = result.expect(result.unconstrained**power)
        z = np.max(np.abs((found.value - truth) / found.standard_error))
        _require(
            bool(z < MAX_Z),
            f"the mean of x**{power} under {name} must be {truth:g} for a standard normal; it is {z:.1f} standard "
            "errors off",
        )


def _check_members(method: AbstractMethod, target: Target) -> None:
    name = type(method).__name__
    method.check(target)
    x = jax.random.normal(jax.random.key(0), (method.num_points, target.dim), float)
    chain = _attempt(
        f"init of {name} must be a function (key, target, x) -> Chain that JAX can trace",
        lambda: jax.jit(lambda key: method.init(key, target, x))(jax.random.key(1)),
    )
    _require(
        isinstance(chain, Chain),
        f"init of {name} must return a Chain of state, parameters and adaptation; got {type(chain).__name__}",
    )
    made = _attempt(
        f"step of {name} must be a function (key, target, chain) -> (state, info) that JAX can trace",
        lambda: jax.jit(lambda key: method.step(key, target, chain))(jax.random.key(2)),
    )
    _require(
        isinstance(made, tuple) and len(made) == 2,
        f"step of {name} must return a state and a StepInfo; got {type(made).__name__}",
    )
    state, info = made
    _same_arrays(f"the state after a step of {name}", chain.state, state)
    first_stage = jax.tree.map(lambda plan: plan[0], stages(50))
    _same_arrays(f"the chain after adapt of {name}", chain, method.adapt(target, chain, first_stage, info))
    points = method.points(target, state)
    expected = (method.num_points, target.dim)
    _require(points.x.shape == expected, f"x of points of {name} must have shape {expected}; got {points.x.shape}")
    _require(
        points.log_weight.shape == expected[:1],
        f"log_weight of points of {name} must have shape {expected[:1]}; got {points.log_weight.shape}",
    )
    for part, value in method.report(info)._asdict().items():
        _require(jnp.shape(value) == (), f"{part} in the report of {name} must be one number; got {jnp.shape(value)}")
    declared = {statistic.name: len(statistic.dims) for statistic in method.statistics}
    given = {each: jnp.ndim(value) for each, value in points.statistics.items()}
    _require(
        not declared or declared == given,
        f"statistics of {name} must declare what points gives, {given} by number of axes; got {declared}",
    )


def _same_arrays(what: str, before: Any, after: Any) -> None:
    shapes = [jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), tree) for tree in (before, after)]
    _require(
        jax.tree.structure(before) == jax.tree.structure(after) and shapes[0] == shapes[1],
        f"{what} must have the arrays it had before, with the same shapes and types; it has not",
    )


def _normal_target() -> Target:
    return Target(lambda x: -0.5 * jnp.sum(x**2), np.zeros(DIM), base=Normal(0.0, 2.0))


def _attempt(promise: str, function: Callable[[], Any]) -> Any:
    """The value of a function; if it raises, the promise that it breaks and what it raised."""
    try:
        return function()
    except Exception as error:
        raise ContractError(f"{promise}; it raised {said(error)}.") from error


def _require(condition: bool, sentence: str) -> None:
    if not condition:
        raise ContractError(f"{sentence}.")
