"""Names of the axes of statistics, as the method declares them."""

from collections.abc import Mapping

from pseudo_extended.methods import AbstractMethod
from pseudo_extended.target.labels import made_up_axes


def statistic_axes(method: AbstractMethod, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[str, ...]]:
    """The axes of every statistic, after chain and draw: those declared, or the name with a number for each axis.

    >>> import pseudo_extended as pe
    >>> statistic_axes(pe.PseudoExtended(num_particles=5), {"beta": (5,), "mine": (5,)})
    {'beta': ('particle',), 'mine': ('mine_dim_0',)}
    """
    declared = {statistic.name: statistic.dims for statistic in method.statistics}
    return {name: declared.get(name, made_up_axes(name, len(shape))) for name, shape in shapes.items()}
