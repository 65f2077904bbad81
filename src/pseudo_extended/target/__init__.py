"""Targets: log γ on an unconstrained vector, with its base, its space (names, bounds, view) and the path between."""

from pseudo_extended.target.target import PathGradients as PathGradients
from pseudo_extended.target.target import PathPoint as PathPoint
from pseudo_extended.target.target import Target as Target
from pseudo_extended.target.target import flatten_position as flatten_position
from pseudo_extended.target.target import zero_if_invalid as zero_if_invalid
