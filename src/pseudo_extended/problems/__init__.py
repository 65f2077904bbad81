"""Problems whose answers are known."""

from pseudo_extended.problems.boltzmann import BoltzmannProblem as BoltzmannProblem
from pseudo_extended.problems.boltzmann import boltzmann_machine as boltzmann_machine
from pseudo_extended.problems.boltzmann import load_boltzmann as load_boltzmann
from pseudo_extended.problems.boltzmann import relax as relax
from pseudo_extended.problems.mixtures import Problem as Problem
from pseudo_extended.problems.mixtures import illustration as illustration
from pseudo_extended.problems.mixtures import twenty_modes as twenty_modes
