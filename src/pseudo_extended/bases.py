"""Bases: the densities from which the path to a target starts, given as `pe.Target(..., base=...)`."""

from pseudo_extended.target.bases import AbstractBase as AbstractBase
from pseudo_extended.target.bases import Base as Base
from pseudo_extended.target.bases import Normal as Normal
from pseudo_extended.target.bases import NormalMixture as NormalMixture

__all__ = ["AbstractBase", "Base", "Normal", "NormalMixture"]
