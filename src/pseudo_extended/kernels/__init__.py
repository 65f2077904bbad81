"""Kernels on a flat vector: the only door to BlackJAX."""

from pseudo_extended.kernels.abstract import AbstractKernel as AbstractKernel
from pseudo_extended.kernels.abstract import KernelInfo as KernelInfo
from pseudo_extended.kernels.abstract import KernelParameters as KernelParameters
from pseudo_extended.kernels.abstract import KernelState as KernelState
from pseudo_extended.kernels.abstract import LogDensity as LogDensity
from pseudo_extended.kernels.abstract import initial_state as initial_state
from pseudo_extended.kernels.abstract import unit_parameters as unit_parameters
from pseudo_extended.kernels.composed import Cycle as Cycle
from pseudo_extended.kernels.composed import Mixture as Mixture
from pseudo_extended.kernels.hamiltonian import HMC as HMC
from pseudo_extended.kernels.hamiltonian import MALA as MALA
from pseudo_extended.kernels.hamiltonian import NUTS as NUTS
from pseudo_extended.kernels.metric import Metric as Metric
from pseudo_extended.kernels.random_walk import RandomWalk as RandomWalk
from pseudo_extended.kernels.tempered import TemperedPoint as TemperedPoint
from pseudo_extended.kernels.tempered import log_density_at as log_density_at
from pseudo_extended.kernels.tempered import tempered_point as tempered_point
