"""Whether a run has room in memory, asked before the memory is needed."""

from pseudo_extended.memory import check_fits, free_memory, size
from pseudo_extended.messages import Message, kinds
from pseudo_extended.methods import AbstractMethod
from pseudo_extended.run.settings import Draws
from pseudo_extended.target import Target

BYTES_PER_WARMUP = 16
"""Of the plan of warm-up, for each of its iterations."""
MOST_ITERATIONS = 2**62
BYTES_PER_CHAIN = 2048
"""Of what is kept of a chain besides its points."""
COPIES = 4
"""Of the points of all chains, with gradients and proposals."""
MEMORY_SHARE = 0.25
"""Of the memory that is free when a run begins, for draws without a store: estimates need several times as much."""


def check_room(target: Target, method: AbstractMethod, draws: Draws, chunk: int | None) -> None:
    """Refuse what cannot even begin: more chains, or a larger chunk, than the machine has memory for."""
    check_fits("warmup", draws.warmup or 0, BYTES_PER_WARMUP * (draws.warmup or 0))
    if draws.thin * draws.draws + (draws.warmup or 0) > MOST_ITERATIONS:
        raise ValueError(
            f"draws, thin and warmup must make fewer than 2⁶² iterations; got {draws.draws} draws, thin = {draws.thin} "
            f"and {draws.warmup or 0} in warm-up."
        )
    free, per_draw = free_memory(), bytes_per_draw(target, method)
    needed = draws.chains * (BYTES_PER_CHAIN + COPIES * per_draw)
    if needed > free / 2:
        raise ValueError(
            f"chains must be fewer, or num_particles: the state of {draws.chains} chains of {method.num_points} points "
            f"in {target.dim} dimensions takes about {size(needed)}; this machine has {size(free)} free."
        )
    if chunk is not None and chunk * method.width * per_draw > free / 4:
        raise ValueError(
            f"chunk must be smaller: {chunk} draws of {method.num_points} points in {target.dim} dimensions take about "
            f"{size(chunk * method.width * per_draw)}; this machine has {size(free)} free."
        )


def explain_room(target: Target, method: AbstractMethod, draws: Draws) -> Message | None:
    """A warning if the draws of a run without a store will not fit into memory."""
    needed, room = draws.draws * draws.chains * bytes_per_draw(target, method), MEMORY_SHARE * free_memory()
    if needed <= room:
        return None
    fitting = int(room / draws.chains / bytes_per_draw(target, method))
    return kinds.NO_ROOM(
        draws=draws.draws,
        chains=draws.chains,
        needed=size(needed),
        room=size(room),
        share=MEMORY_SHARE,
        fitting=fitting,
        thin=-(-draws.draws // max(fitting, 1)),
    )


def bytes_per_draw(target: Target, method: AbstractMethod) -> int:
    """Return the bytes of a draw of one chain: its points and their weights."""
    return 8 * method.num_points * (target.dim + 1)
