"""One kernel on one density: what the plain and the pseudo-extended method share."""

from jaxtyping import Array, Float, Key

from pseudo_extended.kernels import AbstractKernel, KernelInfo, KernelState, LogDensity, initial_state, unit_parameters
from pseudo_extended.methods.abstract import Chain
from pseudo_extended.warmup import Stage, WindowedWarmup, first_step_size


def start_chain(
    key: Key[Array, ""],
    kernel: AbstractKernel,
    warmup: WindowedWarmup,
    log_density: LogDensity,
    position: Float[Array, " dim"],
) -> Chain:
    """A chain at `position`, with a unit metric and a first guess at the step sizes."""
    state = initial_state(log_density, position, gradient=kernel.uses_gradient)
    parameters = unit_parameters(kernel, position.size, dense=warmup.dense)
    parameters = parameters._replace(step_size=first_step_size(key, kernel, log_density, state, parameters))
    return Chain(state, parameters, warmup.start(parameters))


def step_chain(
    key: Key[Array, ""], kernel: AbstractKernel, log_density: LogDensity, chain: Chain
) -> tuple[KernelState, KernelInfo]:
    """One step of the kernel."""
    return kernel.step(key, log_density, chain.state, chain.parameters)


def adapt_chain(kernel: AbstractKernel, warmup: WindowedWarmup, chain: Chain, stage: Stage, info: KernelInfo) -> Chain:
    """One update of step sizes and metric."""
    adaptation, parameters = warmup.update(kernel, chain.adaptation, chain.parameters, stage, chain.state, info)
    return Chain(chain.state, parameters, adaptation)
