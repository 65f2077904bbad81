"""Warm-up: returns parameters, never owns the sampler."""

from pseudo_extended.warmup.step_size import first_step_size as first_step_size
from pseudo_extended.warmup.windows import Adaptation as Adaptation
from pseudo_extended.warmup.windows import Stage as Stage
from pseudo_extended.warmup.windows import WindowedWarmup as WindowedWarmup
from pseudo_extended.warmup.windows import stages as stages
