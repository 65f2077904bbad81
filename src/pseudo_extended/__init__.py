"""Sampling posteriors with many modes: pseudo-extended MCMC (Nemeth, Lindsten, Filippone and Hensman 2019)."""

from pseudo_extended import problems as problems
from pseudo_extended import testing as testing
from pseudo_extended.checkup import Checkup as Checkup
from pseudo_extended.checkup import check as check
from pseudo_extended.extended import ExtendedTarget as ExtendedTarget
from pseudo_extended.instruments import Density as Density
from pseudo_extended.instruments import Fixed as Fixed
from pseudo_extended.instruments import Ladder as Ladder
from pseudo_extended.instruments import PerParticle as PerParticle
from pseudo_extended.instruments import Stratified as Stratified
from pseudo_extended.instruments import Tempered as Tempered
from pseudo_extended.kernels import HMC as HMC
from pseudo_extended.kernels import MALA as MALA
from pseudo_extended.kernels import NUTS as NUTS
from pseudo_extended.kernels import Cycle as Cycle
from pseudo_extended.kernels import Mixture as Mixture
from pseudo_extended.kernels import RandomWalk as RandomWalk
from pseudo_extended.methods import AnnealedImportance as AnnealedImportance
from pseudo_extended.methods import ContinuousTempering as ContinuousTempering
from pseudo_extended.methods import EquiEnergy as EquiEnergy
from pseudo_extended.methods import IndexGibbs as IndexGibbs
from pseudo_extended.methods import ParallelTempering as ParallelTempering
from pseudo_extended.methods import Plain as Plain
from pseudo_extended.methods import PseudoExtended as PseudoExtended
from pseudo_extended.methods import RepellingAttracting as RepellingAttracting
from pseudo_extended.methods import SimulatedTempering as SimulatedTempering
from pseudo_extended.models import from_numpy as from_numpy
from pseudo_extended.models import from_numpyro as from_numpyro
from pseudo_extended.models import from_pymc as from_pymc
from pseudo_extended.models import from_stan as from_stan
from pseudo_extended.results.estimates import Estimate as Estimate
from pseudo_extended.results.modes import Modes as Modes
from pseudo_extended.results.result import Result as Result
from pseudo_extended.run.control import Running as Running
from pseudo_extended.run.handle import Run as Run
from pseudo_extended.run.resume import extend as extend
from pseudo_extended.run.resume import load as load
from pseudo_extended.run.resume import resume as resume
from pseudo_extended.run.sample import sample as sample
from pseudo_extended.run.sample import start as start
from pseudo_extended.store import StoreError as StoreError
from pseudo_extended.store import StoreInUseError as StoreInUseError
from pseudo_extended.store import StoreVersionError as StoreVersionError
from pseudo_extended.store import register_class as register_class
from pseudo_extended.target import Target as Target
from pseudo_extended.target.bases import Base as Base
from pseudo_extended.target.bases import Normal as Normal
from pseudo_extended.target.bases import NormalMixture as NormalMixture

__version__ = "0.1.0"

__all__ = [
    "HMC",
    "MALA",
    "NUTS",
    "AnnealedImportance",
    "Base",
    "Checkup",
    "ContinuousTempering",
    "Cycle",
    "Density",
    "EquiEnergy",
    "Estimate",
    "ExtendedTarget",
    "Fixed",
    "IndexGibbs",
    "Ladder",
    "Mixture",
    "Modes",
    "Normal",
    "NormalMixture",
    "ParallelTempering",
    "PerParticle",
    "Plain",
    "PseudoExtended",
    "RandomWalk",
    "RepellingAttracting",
    "Result",
    "Run",
    "Running",
    "SimulatedTempering",
    "StoreError",
    "StoreInUseError",
    "StoreVersionError",
    "Stratified",
    "Target",
    "Tempered",
    "check",
    "extend",
    "from_numpy",
    "from_numpyro",
    "from_pymc",
    "from_stan",
    "load",
    "problems",
    "register_class",
    "resume",
    "sample",
    "start",
    "testing",
]
