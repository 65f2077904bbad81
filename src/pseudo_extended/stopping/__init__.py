"""Stopping rules: what decides that a run has enough draws. `pe.sample(..., stop=rule)` takes one, also of your own."""

from pseudo_extended.stopping.abstract import AbstractStoppingRule as AbstractStoppingRule
from pseudo_extended.stopping.good_enough import GoodEnough as GoodEnough
