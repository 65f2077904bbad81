"""`check`: what can be known about a model before it is sampled, as a list."""

import sys
import time
import warnings
from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from rich.console import Console

from pseudo_extended import checks
from pseudo_extended.kernels import HMC, RandomWalk
from pseudo_extended.methods import Plain
from pseudo_extended.models import as_target
from pseudo_extended.precision import double_precision, in_double_precision
from pseudo_extended.run.preflight import check_densities, first_error
from pseudo_extended.run.settings import check_not_traced
from pseudo_extended.run.starts import propose_starts
from pseudo_extended.target import Target
from pseudo_extended.target.host import said
from pseudo_extended.target.labels import coordinates, some_coordinates

GOOD, DOUBTFUL, BAD = "good", "doubtful", "bad"
MARKS = {GOOD: "✓", DOUBTFUL: "!", BAD: "✗"}


class Finding(NamedTuple):
    """One line of the list."""

    what: str
    verdict: str
    """good, doubtful or bad."""
    sentence: str


class Checkup(NamedTuple):
    """All findings about a model."""

    findings: tuple[Finding, ...]
    """One for each thing that was looked at: what it is, a verdict, and a sentence."""

    @property
    def ok(self) -> bool:
        """Whether nothing is bad; doubts are allowed."""
        return all(finding.verdict != BAD for finding in self.findings)

    def __getitem__(self, what: Any) -> Any:
        """A finding by its name, such as `checkup["gradient"]`."""
        if isinstance(what, str):
            return next(finding for finding in self.findings if finding.what == what)
        return tuple.__getitem__(self, what)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = {what: [MARKS[verdict], sentence] for what, verdict, sentence in self.findings}
        cells = (
            f"<tr><td>{mark}</td><td>{escape(what)}</td><td>{escape(said)}</td></tr>"
            for what, (mark, said) in rows.items()
        )
        return f'<table style="text-align:left">{"".join(cells)}</table>'

    def __str__(self) -> str:
        width = max(len(finding.what) for finding in self.findings)
        return "\n".join(f"{MARKS[verdict]} {what:<{width}}  {sentence}" for what, verdict, sentence in self.findings)


@in_double_precision
def check(model: Any, init: Any = None, *, num_starts: int = 64, seed: int = 0, show: bool | None = None) -> Checkup:
    """Look at a model before sampling it: prints a list, and returns it.

    Shapes; the density and its gradient at many starts; the gradient against finite differences; the transforms;
    whether the prior is proper and its draws fit it; what single precision would lose; the price of a gradient;
    parameters that nothing depends on.

    Args:
        model: Whatever `pe.sample` takes.
        init: As for `pe.sample`.
        num_starts: How many starts to try.
        seed: Of the starts.
        show: Whether to print the list. None prints it in a script; in a notebook, IPython or at Python's prompt the
            list that is returned shows itself.

    >>> import pseudo_extended as pe
    >>> found = pe.check(lambda x: -jnp.sum(x[:2] ** 2), np.ones(3), show=False)
    >>> print(found["parameters"].verdict, "-", found["parameters"].sentence)
    bad - the log density does not depend on x[2]: drop it, or give it a prior.
    """
    check_not_traced("pe.check")
    target, init = as_target(model, init)
    num_starts = checks.integer("num_starts", num_starts, minimum=4, maximum=4096)
    key = jax.random.key(checks.integer("seed", seed, minimum=0), impl="threefry2x32")
    checks.choice("show", show, (True, False, None))
    doubts = check_densities(target, Plain(HMC() if target.is_differentiable else RandomWalk()))
    u = propose_starts(target, init, key, num_starts)
    findings = [_shapes(target, [str(doubt) for doubt in doubts])]
    values, gradients = _evaluate(target, u)
    findings.append(_density(target, values))
    good = np.isfinite(values)
    if gradients is None:
        findings.append(Finding("gradient", DOUBTFUL, "there is none: only random walks can be used."))
    else:
        findings.append(_gradient(target, gradients[good]))
        good &= np.all(np.isfinite(gradients), axis=1)
        if good.any():
            findings.append(_differences(target, u[good], gradients[good]))
    if good.any():
        findings.append(_transforms(target, u[good]))
        findings += _tails(target, u[good], key)
        findings.append(_single_precision(target, u[good], values[good]))
        findings.append(_price(target, u[good]))
        findings.append(_dependence(target, u[good], key))
    found = Checkup(tuple(findings))
    if show or (show is None and not _shows_itself()):
        Console(highlight=False, soft_wrap=True).print(str(found), markup=False)
    return found


def _shows_itself() -> bool:
    """Whether the value of a call is shown by whoever made it: a notebook, IPython, or Python's prompt."""
    ipython = sys.modules.get("IPython")
    return hasattr(sys, "ps1") or (ipython is not None and ipython.get_ipython() is not None)


def _shapes(target: Target, doubts: list[str]) -> Finding:
    shown = ", ".join(f"{part.name} {part.shape}" for part in target.shown)
    parts = "prior and likelihood" if target.log_likelihood is not None else "one density"
    size = "one dimension" if target.dim == 1 else f"{target.dim} dimensions"
    sentence = f"{size}, {parts}; shown: {shown}."
    return Finding("shapes", DOUBTFUL if doubts else GOOD, " ".join([sentence, *doubts]))


def _evaluate(target: Target, u: Float[np.ndarray, "start d"]) -> tuple[np.ndarray, np.ndarray | None]:
    if not target.is_differentiable:
        return np.asarray(jax.jit(jax.vmap(target.log_target))(u)), None
    values, gradients = jax.jit(jax.vmap(jax.value_and_grad(target.log_target)))(u)
    return np.asarray(values), np.asarray(gradients)


def _density(target: Target, values: Float[np.ndarray, " start"]) -> Finding:
    finite = int(np.sum(np.isfinite(values)))
    error = first_error(target)
    why = "" if error is None else f"; it raised {said(error)}"
    if finite == 0:
        return Finding("density", BAD, f"it is finite at none of {len(values)} starts{why}.")
    spread = f"between {np.min(values[np.isfinite(values)]):.4g} and {np.max(values[np.isfinite(values)]):.4g}"
    verdict = GOOD if finite == len(values) else DOUBTFUL
    return Finding("density", verdict, f"finite at {finite} of {len(values)} starts, {spread}{why}.")


def _gradient(target: Target, gradients: Float[np.ndarray, "start d"]) -> Finding:
    finite = np.isfinite(gradients)
    if finite.all():
        return Finding("gradient", GOOD, f"finite wherever the density is ({len(gradients)} starts).")
    names = some_coordinates(target.parameters, np.any(~finite, axis=0))
    return Finding("gradient", BAD, f"not finite at {int(np.sum(~finite.all(axis=1)))} starts, for {names}.")


def _differences(target: Target, u: np.ndarray, gradients: np.ndarray) -> Finding:
    """Central differences in random directions, at three steps: the best of them must agree."""
    rng = np.random.default_rng(0)
    direction = rng.normal(size=u.shape)
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    density = jax.jit(jax.vmap(target.log_target))
    exact = np.sum(gradients * direction, axis=1)
    errors = []
    for step in (1e-4, 1e-5, 1e-6):
        slope = (np.asarray(density(u + step * direction)) - np.asarray(density(u - step * direction))) / (2 * step)
        errors.append(np.abs(slope - exact) / (1 + np.abs(exact)))
    error = np.nan_to_num(np.min(errors, axis=0), nan=np.inf)
    worst, typical = float(np.max(error)), float(np.median(error))
    sentence = f"differs from finite differences by {typical:.1g} typically and {worst:.1g} at worst, relatively."
    verdict = BAD if typical > 1e-2 else DOUBTFUL if worst > 1e-2 else GOOD
    return Finding("differences", verdict, f"the gradient {sentence}")


def _transforms(target: Target, u: np.ndarray) -> Finding:
    """There and back again; and the Jacobian of bounds against autodiff."""
    few = u[:8]
    if target.view is not None:
        shown = target.view.show(few, target.constrain)
        try:
            back = [
                target.view.read_start({name: shown[name][i] for name in target.view.free}) for i in range(len(few))
            ]
        except ValueError as error:
            return Finding("transforms", DOUBTFUL, f"the model's own values cannot be read back: {error}")
        again = np.stack([np.asarray(target.unconstrain(position)) for position in back])
        gap = 0.0
    else:
        positions = [jax.tree.map(np.asarray, target.constrain(jnp.asarray(point))) for point in few]
        again = np.stack([np.asarray(target.unconstrain(position)) for position in positions])

        def flat(u: Float[Array, " d"]) -> Float[Array, " d"]:
            return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(target.constrain(u))])

        log_det = jnp.linalg.slogdet(jax.vmap(jax.jacfwd(flat))(few))[1]
        gap = float(np.max(np.abs(log_det - jax.vmap(lambda u: target.constrain_with_log_det(u)[1])(few))))
    error = float(np.max(np.abs(again - few) / (1 + np.abs(few))))
    sentence = f"there and back again is off by {error:.1g}" + ("." if gap == 0 else f", Jacobians by {gap:.1g}.")
    return Finding("transforms", GOOD if max(error, gap) < 1e-5 else DOUBTFUL if error < 1e-2 else BAD, sentence)


def _tails(target: Target, u: np.ndarray, key: Any) -> list[Finding]:
    """Whether prior and target fall faster than 1/x far away, in every coordinate; and whether draws fit the prior."""
    findings = []
    if target.base is not None:
        what = "prior" if target.log_likelihood is not None else "base"
        heavy = some_coordinates(target.parameters, _heavy(lambda u: target.path_point(u).log_base, u))
        if heavy:
            findings.append(Finding(what, BAD, f"it looks improper in {heavy}."))
        elif not target.base.can_sample:
            findings.append(Finding(what, GOOD, "it falls off in every coordinate; it cannot be drawn from."))
        else:
            findings.append(_draws_fit(target, what, key))
    heavy = some_coordinates(target.parameters, _heavy(lambda u: target.path_point(u).log_target, u))
    sentence = f"does not fall off in {heavy}: is it proper?" if heavy else "falls off in every coordinate."
    findings.append(Finding("tails", DOUBTFUL if heavy else GOOD, f"the target {sentence}"))
    return findings


def _heavy(log_density: Callable[[Array], Array], u: np.ndarray) -> Bool[np.ndarray, " d"]:
    """Coordinates along which a density falls no faster than 1/|x|, on either side, from the middle of the starts."""
    dim = u.shape[1]
    middle = np.median(u, axis=0)
    sides = np.concatenate([np.eye(dim), -np.eye(dim)])
    evaluate = jax.jit(jax.vmap(log_density))
    near, far = (np.asarray(evaluate(middle + distance * sides)) for distance in (1e2, 1e4))
    with np.errstate(invalid="ignore"):
        slope = (far - near) / np.log(1e2)
    falls = (slope < -1) | ~np.isfinite(far) | ~np.isfinite(near)
    return ~(falls[:dim] & falls[dim:])


def _draws_fit(target: Target, what: str, key: Any, num_draws: int = 2000) -> Finding:
    """Stein's identity: under a proper density E[∂_i log p] = 0 and E[u_i ∂_i log p] = -1, whatever its constant."""
    draws = np.asarray(jax.jit(jax.vmap(target.draw_base))(jax.random.split(key, num_draws)))
    if not target.is_differentiable:
        return Finding(what, GOOD, "it can be drawn from.")
    gradient = np.asarray(jax.jit(jax.vmap(jax.grad(lambda u: target.path_point(u).log_base)))(draws))
    kept = np.all(np.isfinite(draws) & np.isfinite(gradient), axis=1)
    if kept.mean() < 0.99:
        return Finding(what, BAD, f"{np.sum(~kept)} of {num_draws} of its draws are outside its own support.")
    moments = np.stack([gradient[kept], 1 + (draws * gradient)[kept]])
    error = np.std(moments, axis=1) / np.sqrt(np.sum(kept))
    # Six standard errors, because heavy tails make them small: a wrong draw is off by far more.
    wrong = np.any(np.abs(moments.mean(axis=1)) > 6 * error + 1e-6, axis=0)
    if wrong.any():
        names = some_coordinates(target.parameters, wrong)
        return Finding(what, BAD, f"its draws do not fit its density (Stein's identity fails) in {names}.")
    return Finding(what, GOOD, f"proper, and {num_draws} of its draws fit its density.")


def _single_precision(target: Target, u: np.ndarray, values: np.ndarray) -> Finding:
    if target.host_functions:
        return Finding("precision", GOOD, "the density is computed in Python, in double precision.")
    try:
        with jax.enable_x64(False), warnings.catch_warnings(action="ignore"):  # of dtypes that are cut, on purpose
            single = np.asarray(jax.jit(jax.vmap(target.log_target))(jnp.asarray(u, jnp.float32)), float)
    except Exception as error:  # a function may insist on doubles; then there is nothing to lose
        return Finding("precision", GOOD, f"it cannot run in single precision ({said(error)}).")
    loss = np.abs(single - values)
    typical, worst = float(np.nanmedian(loss)), float(np.nanmax(np.where(np.isfinite(loss), loss, 0.0)))
    return Finding(
        "precision", GOOD, f"double, as always; single would lose {typical:.1g} of log density, {worst:.1g} at worst."
    )


def _price(target: Target, u: np.ndarray) -> Finding:
    gradient = target.is_differentiable
    evaluate = jax.value_and_grad(target.log_target) if gradient else target.log_target
    many = jnp.asarray(np.resize(u, (8, u.shape[1])) + 1e-9 * np.arange(8)[:, None])
    began = time.perf_counter()
    compiled = jax.jit(jax.vmap(evaluate)).lower(many).compile()
    compiling = time.perf_counter() - began
    jax.block_until_ready(compiled(many))
    best = np.inf
    for i in range(1, 6):
        points = jax.block_until_ready(many + 1e-9 * i)  # new ones: answers that are known cost nothing
        began = time.perf_counter()
        jax.block_until_ready(compiled(points))
        best = min(best, time.perf_counter() - began)
    each = best / 8
    # Four chains of 2,000 iterations, eight pseudo-samples, some six evaluations each.
    total = 4 * 2000 * 8 * 6 * each
    what = "a gradient" if gradient else "a value"
    return Finding(
        "price",
        GOOD if total < 600 else DOUBTFUL,
        f"{what} takes {each * 1e6:.3g} µs in a batch of 8, and {compiling:.2g} s to compile; a run with the defaults "
        f"some {total:.2g} s of one core, about as much again for the pilot, and compilation.",
    )


def _dependence(target: Target, u: np.ndarray, key: Any) -> Finding:
    """Coordinates on which nothing depends, and combinations of them that the likelihood does not see."""
    with double_precision():
        if not target.is_differentiable:
            rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
            density = jax.jit(jax.vmap(target.log_target))
            here = np.asarray(density(u))
            moved = [np.asarray(density(u + rng.normal(size=(len(u), 1)) * unit)) for unit in np.eye(target.dim)]
            silent = np.array([np.array_equal(there, here) for there in moved])
            whole = likelihood = None
        else:
            whole = np.asarray(jax.jit(jax.vmap(jax.grad(target.log_target)))(u))
            silent = np.all(whole == 0, axis=0)
            likelihood = None
            if target.log_likelihood is not None:
                likelihood = np.asarray(jax.jit(jax.vmap(jax.grad(lambda u: target.path_point(u).delta)))(u))
    if silent.any():
        names = some_coordinates(target.parameters, silent)
        return Finding("parameters", BAD, f"the log density does not depend on {names}: drop it, or give it a prior.")
    doubts = []
    if likelihood is not None:
        unseen = np.all(likelihood == 0, axis=0)
        if unseen.any():
            names = some_coordinates(target.parameters, unseen)
            doubts.append(f"the likelihood does not depend on {names}: the prior decides.")
    directions = _null_directions(target, likelihood if likelihood is not None else whole)
    if directions:
        seen = "likelihood" if likelihood is not None else "log density"
        doubts.append(f"the {seen} never changes along {'; '.join(directions)}.")
    if doubts:
        return Finding("parameters", DOUBTFUL, " ".join(doubts))
    return Finding("parameters", GOOD, "each matters, and so does every combination of them.")


def _null_directions(target: Target, gradients: np.ndarray | None) -> list[str]:
    """Directions in which the gradient vanishes at all starts: linear combinations that are not identified."""
    if gradients is None or len(gradients) <= target.dim:
        return []
    scale = np.sqrt(np.mean(gradients**2, axis=0))
    seen = np.flatnonzero(scale > 0)
    # Each start counts alike, whatever the size of its gradient.
    scaled = gradients[:, seen] / scale[seen]
    scaled /= np.maximum(np.linalg.norm(scaled, axis=1, keepdims=True), 1e-300)
    _, sizes, rows = np.linalg.svd(scaled, full_matrices=False)
    names = [coordinates(target.parameters)[i] for i in seen]
    found = []
    for row in rows[sizes < 1e-9 * sizes[0]] / scale[seen]:
        weights = row / np.max(np.abs(row))
        parts = zip(names, weights, strict=True)
        found.append(" ".join(f"{weight:+.2g} {name}" for name, weight in parts if abs(weight) > 1e-3))
    return found
