"""Problems whose answers are known."""

from pseudo_extended.problems.mixtures import Problem as Problem
from pseudo_extended.problems.mixtures import illustration as illustration
from pseudo_extended.problems.mixtures import twenty_modes as twenty_modes
