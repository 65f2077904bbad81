"""Methods: how a target becomes a Markov chain of weighted points."""

from pseudo_extended.methods.abstract import AbstractMethod as AbstractMethod
from pseudo_extended.methods.abstract import AbstractPreparedMethod as AbstractPreparedMethod
from pseudo_extended.methods.abstract import Chain as Chain
from pseudo_extended.methods.abstract import Prepared as Prepared
from pseudo_extended.methods.abstract import Statistic as Statistic
from pseudo_extended.methods.abstract import StepInfo as StepInfo
from pseudo_extended.methods.abstract import WeightedPoints as WeightedPoints
from pseudo_extended.methods.adaptive.method import AdaptivePseudoExtended as AdaptivePseudoExtended
from pseudo_extended.methods.annealed_importance import AnnealedImportance as AnnealedImportance
from pseudo_extended.methods.continuous_tempering import ContinuousTempering as ContinuousTempering
from pseudo_extended.methods.equi_energy import EquiEnergy as EquiEnergy
from pseudo_extended.methods.parallel_tempering import ParallelTempering as ParallelTempering
from pseudo_extended.methods.plain import Plain as Plain
from pseudo_extended.methods.pseudo_extended import PseudoExtended as PseudoExtended
from pseudo_extended.methods.repelling_attracting import RepellingAttracting as RepellingAttracting
from pseudo_extended.methods.simulated_tempering import SimulatedTempering as SimulatedTempering
