"""Weighted draws for other tools: a data frame, anesthetic, getdist (objects and files) and ChainConsumer.

The weight of a point over the whole run is w / Σw: the weights of every exported object sum to one, so weighted means
and covariances computed by the other library are those of the result.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from pseudo_extended import checks
from pseudo_extended.optional import require
from pseudo_extended.precision import in_double_precision
from pseudo_extended.results.selection import chosen_labels, select, values_of
from pseudo_extended.target.views import map_in_batches

if TYPE_CHECKING:
    from pseudo_extended.results.result import Result

Names = str | Sequence[str] | None
COLUMNS = ("chain", "draw", "particle", "weight", "log_density")
"""Of a data frame, besides the parameters."""
PANDAS_TOO_NEW = (3, 1)
"""For anesthetic, which replaces the formatter of pandas."""


def to_dataframe(
    result: "Result", *, var_names: Names = None, filter_vars: str | None = None, log_density: bool | None = None
) -> pd.DataFrame:
    """All weighted points as a pandas data frame, a row for each point.

    Columns: `chain`, `draw`, `particle`, `weight` (all of them sum to one), `log_density`, and one for every
    coordinate, by its label. A parameter that has the name of one of the others gets an underscore. Pass
    `frame[result.labels], weights=frame["weight"]` to any tool that takes weights, such as `corner.corner`.

    Args:
        result: The result.
        var_names: Parameters or coordinates to export; all unless given.
        filter_vars: "like" or "regex" makes `var_names` parts of names, or regular expressions, as in ArviZ.
        log_density: Whether to evaluate the log density at every point, in the space of the parameters (of a model of
            another library, on its unconstrained space). None does so unless the density is called in Python.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> result = pe.sample(lambda x: -jnp.sum(x**2), jnp.zeros(2), method=pe.Plain(), draws=50, progress=False)
    >>> frame = result.to_dataframe()
    >>> list(frame.columns)
    ['chain', 'draw', 'particle', 'weight', 'log_density', 'x[0]', 'x[1]']
    >>> bool(np.isclose((frame["weight"] * frame["x[0]"]).sum(), result.mean().value[0]))
    True
    """
    chosen = select(result, var_names, filter_vars)
    shape = result.weights.shape
    chain, draw, particle = (index.ravel() for index in np.indices(shape))
    columns: dict[str, Any] = {
        "chain": chain,
        "draw": draw,
        "particle": particle,
        "weight": result.weights.ravel() / np.sum(result.weights),
    }
    if checks.choice("log_density", log_density, (True, False, None)) or (
        log_density is None and not result.target.host_functions
    ):
        columns["log_density"] = log_densities(result).ravel()
    values = values_of(result, chosen).reshape(-1, len(chosen))
    for i, label in enumerate(chosen_labels(result, chosen)):
        columns[f"{label}_" if label in COLUMNS else label] = values[:, i]
    return pd.DataFrame(columns)


@in_double_precision
def log_densities(result: "Result") -> Float[np.ndarray, "chain draw particle"]:
    """The log density at every point, in the user's space: without the Jacobian of the target's bounds."""
    target = result.target

    def log_density(u: Any) -> Any:
        return target.log_target(u) - target.constrain_with_log_det(u)[1]

    flat = result.unconstrained.reshape(-1, target.dim)
    return np.asarray(map_in_batches(log_density, flat)).reshape(result.weights.shape)


def to_anesthetic(result: "Result", **options: Any) -> Any:
    """The weighted points as `anesthetic.MCMCSamples`, with the chain as a column and the log density as `logL`.

    Further keywords go to `MCMCSamples`. Points without weight are left out. anesthetic needs a pandas below 3.1.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> result = pe.sample(lambda x: -jnp.sum(x**2), jnp.zeros(2), method=pe.Plain(), draws=50, progress=False)
    >>> samples = result.to_anesthetic()  # doctest: +SKIP
    >>> samples.plot_2d(["x[0]", "x[1]"])  # doctest: +SKIP
    """
    if tuple(int(part) for part in pd.__version__.split(".")[:2]) >= PANDAS_TOO_NEW:
        raise ImportError(
            "to_anesthetic needs a pandas below 3.1: with later ones, importing anesthetic breaks the printing of all "
            "data frames; install it with `pip install anesthetic 'pandas<3.1'`."
        )
    anesthetic = require("anesthetic", "anesthetic", "to_anesthetic")
    frame = _with_weight(to_dataframe(result))
    names = _names(result)
    labels = [f"${latex(name)}$" for name in names]
    data = {"data": frame[names].to_numpy(), "columns": names, "labels": labels, "weights": frame["weight"].to_numpy()}
    if "log_density" in frame:
        data["logL"] = frame["log_density"].to_numpy()
    samples = anesthetic.MCMCSamples(**(data | options))
    samples["chain", r"$n_\mathrm{chain}$"] = frame["chain"].to_numpy()  # by this label its Gelman_Rubin finds it
    return samples


def to_getdist(result: "Result", **options: Any) -> Any:
    """The weighted points as `getdist.MCSamples`, one entry for each chain, with the bounds as ranges.

    Further keywords go to `MCSamples`. Points without weight are left out.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> result = pe.sample(lambda x: -jnp.sum(x**2), jnp.zeros(2), method=pe.Plain(), draws=50, progress=False)
    >>> result.to_getdist().getTable().tableTex()  # doctest: +SKIP
    """
    getdist = require("getdist", "getdist", "to_getdist")
    chains = _by_chain(result)
    given: dict[str, Any] = {
        "samples": [values for _, _, values in chains],
        "weights": [weight for weight, _, _ in chains],
        "loglikes": [minus_log for _, minus_log, _ in chains],
        "names": [_file_name(name) for name in _names(result)],
        "labels": [latex(name) for name in _names(result)],
        "ranges": {_file_name(name): list(pair) for name, pair in _ranges(result).items()},
        "sampler": "mcmc",
        "settings": {"ignore_rows": 0},
    }
    try:
        return getdist.MCSamples(**(given | options))
    except TypeError as error:
        raise TypeError(f"options must be keywords of getdist.MCSamples, which says: {error}.") from error


def save_getdist(result: "Result", root: str | Path) -> list[Path]:
    """Write the files that getdist, CosmoMC and Cobaya tools read, and return their paths; getdist is not needed.

    `root_1.txt`, … have a line for each point with weight: the weight, minus the log density, the parameters.
    `root.paramnames` and `root.ranges` have names, labels and bounds.

    >>> import jax.numpy as jnp, pseudo_extended as pe, tempfile
    >>> result = pe.sample(lambda x: -jnp.sum(x**2), jnp.zeros(2), method=pe.Plain(), draws=50, progress=False)
    >>> [path.name for path in result.save_getdist(tempfile.mkdtemp() + "/run")]
    ['run_1.txt', 'run_2.txt', 'run_3.txt', 'run_4.txt', 'run.paramnames', 'run.ranges']
    """
    root = checks.path_to_write("root", root)
    paths = []
    for number, (weight, minus_log, values) in enumerate(_by_chain(result), 1):
        paths.append(root.with_name(f"{root.name}_{number}.txt"))
        np.savetxt(paths[-1], np.column_stack([weight, minus_log, values]), fmt="%.10e")
    ranges, names = _ranges(result), _names(result)
    texts = {
        "paramnames": [f"{_file_name(name)}\t{latex(name)}" for name in names],
        "ranges": [f"{_file_name(name)}\t{low}\t{high}" for name, (low, high) in ranges.items()],
    }
    for suffix, lines in texts.items():
        paths.append(root.with_name(f"{root.name}.{suffix}"))
        paths[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def to_chainconsumer(result: "Result", name: str = "pseudo-extended", **options: Any) -> Any:
    """The weighted points as a `chainconsumer.Chain` (version 1 and later); further keywords go to `Chain`.

    ChainConsumer's metadata ask for NumPy 1, which this library does not support; it works with NumPy 2 nevertheless:
    `pip install --no-deps chainconsumer`.

    >>> import jax.numpy as jnp, pseudo_extended as pe
    >>> result = pe.sample(lambda x: -jnp.sum(x**2), jnp.zeros(2), method=pe.Plain(), draws=50, progress=False)
    >>> chain = result.to_chainconsumer("ours")  # doctest: +SKIP
    """
    library = require("chainconsumer", "chainconsumer", "to_chainconsumer", "--no-deps ")
    if not hasattr(library, "Chain"):
        raise ImportError("to_chainconsumer needs version 1 of chainconsumer, or a later one; this one is older.")
    frame = _with_weight(to_dataframe(result))
    columns = {column: frame[column].to_numpy() for column in [*_names(result), "weight"]}
    if "log_density" in frame:
        columns["log_posterior"] = frame["log_density"].to_numpy()
    return library.Chain(samples=pd.DataFrame(columns), name=name, **options)


def latex(label: str) -> str:
    r"""A label as mathematical text, upright, with LaTeX's own characters escaped.

    >>> print(latex("b_is_slower[50 %]"))
    \mathrm{b\_is\_slower[50\ \%]}
    """
    escaped = "".join(rf"\{c}" if c in "_%#&${} " else {"\\": r"\backslash ", "^": r"\hat{}"}.get(c, c) for c in label)
    return rf"\mathrm{{{escaped}}}"


def _names(result: "Result") -> list[str]:
    """The columns of the parameters in a data frame."""
    return [f"{label}_" if label in COLUMNS else label for label in result.labels]


def _file_name(name: str) -> str:
    """A name as getdist's files can have it: without blanks, and without the marks of derived parameters."""
    return "".join("_" if character.isspace() or character in "*?=" else character for character in name)


def _with_weight(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.loc[frame["weight"] > 0].reset_index(drop=True)


def _by_chain(result: "Result") -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Weight, minus log density and parameters of the points of each chain."""
    frame = _with_weight(to_dataframe(result))
    chains = []
    for _, part in frame.groupby("chain"):
        minus_log = -part["log_density"].to_numpy() if "log_density" in part else np.zeros(len(part))
        chains.append((part["weight"].to_numpy(), minus_log, part[_names(result)].to_numpy()))
    return chains


def _ranges(result: "Result") -> dict[str, tuple[float | str, float | str]]:
    """Hard bounds by coordinate, N for none; only those of a target without a view are known."""
    if result.target.view is not None:
        return {}
    found: dict[str, tuple[float | str, float | str]] = {}
    names = iter(_names(result))
    for parameter, bounds in zip(result.target.parameters, result.target.bounds, strict=True):
        for i in range(parameter.size):
            name = next(names)
            if bounds is not None:
                low, high = (float(end[i]) for end in (bounds.lower, bounds.upper))
                found[name] = (low if np.isfinite(low) else "N", high if np.isfinite(high) else "N")
    return found
