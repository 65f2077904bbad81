"""Problems whose answers are known, and those of the paper's experiments."""

from pseudo_extended.problems.boltzmann import BoltzmannProblem as BoltzmannProblem
from pseudo_extended.problems.boltzmann import boltzmann_machine as boltzmann_machine
from pseudo_extended.problems.boltzmann import load_boltzmann as load_boltzmann
from pseudo_extended.problems.boltzmann import relax as relax
from pseudo_extended.problems.horseshoe import HorseshoeProblem as HorseshoeProblem
from pseudo_extended.problems.horseshoe import cancer as cancer
from pseudo_extended.problems.horseshoe import horseshoe_regression as horseshoe_regression
from pseudo_extended.problems.mean_field import VariationalNormal as VariationalNormal
from pseudo_extended.problems.mean_field import load_mean_field as load_mean_field
from pseudo_extended.problems.mean_field import mean_field as mean_field
from pseudo_extended.problems.mixtures import Problem as Problem
from pseudo_extended.problems.mixtures import illustration as illustration
from pseudo_extended.problems.mixtures import twenty_modes as twenty_modes
from pseudo_extended.problems.mrna import TransfectionProblem as TransfectionProblem
from pseudo_extended.problems.mrna import mrna as mrna
from pseudo_extended.problems.shared_parameters import SharedProblem as SharedProblem
from pseudo_extended.problems.shared_parameters import theta_and_x as theta_and_x
from pseudo_extended.problems.shared_parameters import with_shared_theta as with_shared_theta
