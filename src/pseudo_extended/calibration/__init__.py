"""Whether a sampler is right for a model: simulation-based calibration."""

from pseudo_extended.calibration.simulated import simulation_based_calibration as simulation_based_calibration
from pseudo_extended.calibration.table import Calibration as Calibration
