"""Instruments: the densities q of the pseudo-samples."""

from pseudo_extended.instruments.abstract import AbstractInstrument as AbstractInstrument
from pseudo_extended.instruments.abstract import Terms as Terms
from pseudo_extended.instruments.density import Density as Density
from pseudo_extended.instruments.ladder import Fixed as Fixed
from pseudo_extended.instruments.ladder import Ladder as Ladder
from pseudo_extended.instruments.per_particle import PerParticle as PerParticle
from pseudo_extended.instruments.stratified import Stratified as Stratified
from pseudo_extended.instruments.temperatures import Temperatures as Temperatures
from pseudo_extended.instruments.tempered import Tempered as Tempered
