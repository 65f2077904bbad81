"""How many of the modes that a posterior might have would be found: injection and recovery."""

from pseudo_extended.recovery.sensitivity import Sensitivity as Sensitivity
from pseudo_extended.recovery.sensitivity import sensitivity as sensitivity
