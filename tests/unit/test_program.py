"""The compiled programs: never stale, never compiled twice, and never mixed up."""

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended import compiled
from pseudo_extended.compiled import Job
from pseudo_extended.compiler_options import loop_options
from pseudo_extended.run.program import CHUNK_BYTES, MAX_CAPACITY, capacity_for, chunk_input
from pseudo_extended.warmup import stages

pytestmark = pytest.mark.xdist_group("program")  # one worker, so that a program compiled by one test serves the next

RUN = {"draws": 20, "warmup": 5, "chains": 1, "seed": 0, "progress": False}


def sample(target, init, method=None, **options):
    return pe.sample(target, init, method=method or pe.Plain(pe.HMC(3)), **RUN | options)


def normal(x):
    return -0.5 * jnp.sum(x**2)


DATA = {}


def reads_a_global(x):
    return -0.5 * jnp.sum((x - jnp.sum(DATA["centre"])) ** 2)


KINDS = {
    "one entry of a large array": lambda centre: np.r_[np.zeros(4000), centre, np.zeros(4000)],
    "JAX array": lambda centre: jnp.full(3, centre / 3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_global_changed_between_two_runs_is_seen(kind):
    """Draws around 0, then around 50, with a scale of 1: 20 draws tell them apart without doubt."""
    means = []
    for centre in (0.0, 50.0):
        DATA["centre"] = KINDS[kind](centre)
        means.append(sample(reads_a_global, np.full(2, centre)).unconstrained.mean())
    assert abs(means[0]) < 5
    assert abs(means[1] - 50) < 5


def test_the_same_run_does_not_compile_again():
    def density(x):
        return -jnp.sum(x**4)

    first = sample(density, np.zeros(3))
    known = set(compiled._compiled)
    again = sample(density, np.zeros(3))
    other_start = sample(density, np.ones(3), seed=1, draws=7, warmup=9)
    same_text = sample(lambda x: -jnp.sum(x**4), np.zeros(3))
    assert set(compiled._compiled) == known
    np.testing.assert_array_equal(again.unconstrained, first.unconstrained)
    np.testing.assert_array_equal(same_text.unconstrained, first.unconstrained)
    assert other_start.num_draws == 7


class TestProgramsOfEqualText:
    """Names, labels and the class of the kernel are no part of a program's text, but of the objects around it."""

    def test_other_labels(self):
        unnamed = sample(pe.Target(normal, np.zeros(2)), np.zeros(2))
        for options in ({"names": "theta"}, {"dims": {"x": ["school"]}}, {"coords": {"x_dim_0": ["a", "b"]}}):
            named = sample(pe.Target(normal, np.zeros(2), **options), np.zeros(2))
            np.testing.assert_array_equal(named.unconstrained, unnamed.unconstrained)
            assert named.target.names == ((options.get("names") or "x"),)

    @pytest.mark.slow
    def test_another_structure_of_the_position(self):
        flat = sample(normal, np.zeros(1))
        nested = sample(pe.Target(lambda p: normal(p["x"]), {"x": np.zeros(1)}), {"x": np.zeros(1)})
        np.testing.assert_array_equal(nested.points["x"], flat.points)

    @pytest.mark.slow
    def test_another_kernel_that_starts_in_the_same_way(self):
        """All kernels with gradients look for a first step size with the same program."""
        for kernel in (pe.HMC(3), pe.NUTS(max_depth=3)):
            assert sample(normal, np.zeros(2), pe.Plain(kernel)).num_draws == 20

    @pytest.mark.slow
    def test_equal_kernels_of_different_classes(self):
        """MALA is HMC with one step, so both programs are equal."""
        walk = sample(normal, np.zeros(2), pe.Plain(pe.HMC(1, jitter=0.0, target_acceptance=0.574)))
        langevin = sample(normal, np.zeros(2), pe.Plain(pe.MALA()))
        np.testing.assert_array_equal(walk.unconstrained, langevin.unconstrained)

    @pytest.mark.slow
    def test_other_numbers_of_the_same_shape(self):
        """Arrays of target and method are arguments of the program: the same program, other draws."""
        hot = sample(normal, np.zeros(2), pe.PseudoExtended(pe.Fixed(0.1), pe.HMC(2), 2))
        known = set(compiled._compiled)
        cold = sample(normal, np.zeros(2), pe.PseudoExtended(pe.Fixed(0.9), pe.HMC(2), 2))
        assert set(compiled._compiled) == known
        assert np.all(hot.statistics["beta"] == 0.1)
        assert np.all(cold.statistics["beta"] == 0.9)
        assert not np.array_equal(hot.unconstrained, cold.unconstrained)


@pytest.mark.slow
def test_memory_of_programs_is_bounded(monkeypatch):
    """A run has two programs, so with room for one the older is forgotten, and the run is none the worse for it."""
    monkeypatch.setattr(compiled, "_compiled", OrderedDict())
    monkeypatch.setattr(compiled, "_MAX_COMPILED", 1)
    assert sample(normal, np.zeros(2)).num_draws == 20
    assert len(compiled._compiled) == 1


class Lowered:
    """A program that takes as long to compile as the test lets it; it is known by its text."""

    in_tree = in_avals = out_tree = None

    def __init__(self, text, error=None):
        self.text, self.error = text, error
        self.begun, self.may_end = Event(), Event()

    def as_text(self):
        return self.text

    def compile(self, compiler_options=None):
        assert compiler_options == loop_options()
        self.begun.set()
        assert self.may_end.wait(60)
        if self.error:
            raise self.error
        return self


class TestCompilingOnSeveralThreads:
    @pytest.fixture
    def submit(self, monkeypatch):
        monkeypatch.setattr(compiled, "_compiled", OrderedDict())
        with ThreadPoolExecutor(2) as pool:
            yield lambda program: pool.submit(compiled._compile, (Job(len, ()),), [program])

    def test_a_thread_does_not_wait_for_the_programs_of_others(self, submit):
        slow, fast = Lowered("slow"), Lowered("fast")
        first = submit(slow)
        assert slow.begun.wait(60)
        fast.may_end.set()
        assert submit(fast).result(60) == [fast]
        assert not first.done()
        slow.may_end.set()
        assert first.result(60) == [slow]

    def test_one_compiles_and_the_other_waits_for_it(self, submit):
        one, other = Lowered("same"), Lowered("same")
        first = submit(one)
        assert one.begun.wait(60)
        second = submit(other)
        one.may_end.set()
        assert first.result(60) == second.result(60) == [one]
        assert not other.begun.is_set()

    def test_what_failed_for_one_is_tried_by_the_other_and_not_remembered(self, submit):
        one, other, later = Lowered("same", MemoryError("no room")), Lowered("same"), Lowered("same")
        first = submit(one)
        assert one.begun.wait(60)
        second = submit(other)
        for program in (one, other, later):
            program.may_end.set()
        with pytest.raises(MemoryError, match="no room"):
            first.result(60)
        assert second.result(60) == [other]
        assert not any(future.cancelled() for future in compiled._compiled.values())
        assert submit(later).result(60) in ([later], [other])


class TestThin:
    """`thin` steps for each draw, of which the last is kept."""

    def test_counts_all_steps(self):
        """The cost of a draw is that of all its steps; what went wrong in a step that is not kept went wrong, too."""
        result = sample(normal, np.zeros(2), pe.Plain(pe.HMC(3)), thin=4)
        assert np.all(result.statistics["num_evaluations"] == 12)

    def test_a_wall_met_in_a_skipped_step_counts(self):
        """One step of this random walk leaves (0, ∞) with probability about 1/2, one of eight with more than 0.9."""
        wall = lambda x: jnp.where(x[0] > 0, -x[0], -jnp.inf)  # noqa: E731
        thinned = sample(wall, np.ones(1), pe.Plain(pe.RandomWalk()), draws=200, thin=8)
        assert thinned.statistics["non_finite"].mean() > 0.8


def test_capacity_is_about_two_megabytes():
    for dim in (1, 10, 1000, 10**6):
        target = pe.Target(normal, np.zeros(dim))
        capacity = capacity_for(target, pe.PseudoExtended(num_particles=5))
        assert 16 <= capacity <= MAX_CAPACITY
        if 16 < capacity < MAX_CAPACITY:
            assert CHUNK_BYTES / 2 < capacity * 5 * (dim + 4) * 8 <= CHUNK_BYTES


@pytest.mark.usefixtures("x64")
def test_chunk_input_is_a_window_of_the_plan():
    plan = stages(100)
    chunk = chunk_input(None, 30, 20, 32, plan)
    assert int(chunk.first) == 30
    assert bool(chunk.adapts)
    for part, whole in zip(chunk.stages, plan, strict=True):
        assert part.shape == (32,)
        np.testing.assert_array_equal(part[:20], whole[30:50])
        assert not part[20:].any()
    assert not bool(chunk_input(None, 0, 5, 32, None).adapts)
