"""Where chains start: every kind of `init`, and what is said about one that will not do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.models.functions import target_from
from pseudo_extended.run.starts import starting_points

from .sentences import assert_sentence


def normal(x):
    return -0.5 * jnp.sum(x**2)


def model(p):
    return -0.5 * jnp.sum(p["theta"] ** 2) - p["tau"]


PLAIN = pe.Target(normal, np.zeros(2))
MODEL = pe.Target(model, {"theta": np.zeros(3), "tau": 1.0}, bounds={"tau": (0, 5)})
POSITION = {"theta": np.array([0.1, 0.2, 0.3]), "tau": 2.0}


def starts(target, init, chains=2, particles=3, seed=0, needs_gradient=True):
    kernel = pe.HMC(1) if needs_gradient else pe.RandomWalk()
    method = pe.PseudoExtended(pe.Fixed(0.5), kernel, particles)
    return starting_points(target, method, init, jax.random.key(seed, impl="threefry2x32"), chains)


def tiny(target, init=None, **options):
    """The shortest run there is."""
    given = {"method": pe.Plain(pe.HMC(1)), "draws": 2, "warmup": 0, "chains": 2, "seed": 0, "progress": False}
    return pe.sample(target, init, **given | options)


@pytest.mark.usefixtures("x64")
class TestKinds:
    def test_one_position_is_the_centre(self):
        """Over-dispersed: within 1 of it on the unconstrained scale, and all different."""
        centre = np.array([3.0, -2.0])
        x = starts(PLAIN, centre)
        assert x.shape == (2, 3, 2)
        assert np.all(np.abs(x - centre) <= 1)
        assert np.ptp(x[..., 0]) > 0.5
        assert len(np.unique(x)) == x.size

    def test_one_position_of_a_model(self):
        x = starts(MODEL, POSITION)
        centre = np.asarray(MODEL.unconstrain(POSITION))
        assert x.shape == (2, 3, 4)
        assert np.all(np.abs(x - centre) <= 1)

    def test_the_rest_of_a_batch_is_there_for_a_pilot(self):
        """20 positions of which a chain takes the first 3, and one is no good; all chains give the pilot the same."""
        batch = np.arange(40.0).reshape(20, 2)
        batch[7] = 1e200  # where the density is zero
        key = jax.random.key(0, impl="threefry2x32")
        x = starting_points(PLAIN, pe.AdaptivePseudoExtended(3), batch, key, 2)
        assert x.shape == (2, 19, 2)
        np.testing.assert_array_equal(x[0], np.delete(batch, 7, axis=0))
        np.testing.assert_array_equal(x[1, 3:], x[0, 3:])
        np.testing.assert_array_equal(starting_points(PLAIN, pe.AdaptivePseudoExtended(3), batch, key, 5)[0], x[0])
        assert starting_points(PLAIN, pe.AdaptivePseudoExtended(3), batch[:2], key, 2).shape == (2, 3, 2)

    def test_a_batch_is_used_as_it_is(self):
        batch = np.arange(12.0).reshape(6, 2) / 10
        np.testing.assert_array_equal(starts(PLAIN, batch), batch.reshape(2, 3, 2))

    def test_a_short_batch_is_used_again(self):
        """In turn, and not in the same way by every chain."""
        batch = np.arange(6.0).reshape(3, 2)
        x = starts(PLAIN, batch)
        for chain in x:
            np.testing.assert_array_equal(chain[np.argsort(chain[:, 0])], batch)
        assert np.any(x[0] != x[1])

    def test_a_batch_of_a_model(self):
        batch = {"theta": np.arange(6.0).reshape(2, 3), "tau": np.array([1.0, 4.0])}
        x = starts(MODEL, batch, chains=2, particles=1)
        for c in range(2):
            position = MODEL.constrain(jnp.asarray(x[c, 0]))
            np.testing.assert_allclose(position["theta"], batch["theta"][c], rtol=1e-14)
            np.testing.assert_allclose(position["tau"], batch["tau"][c], rtol=1e-14)

    def test_a_function_of_a_key(self):
        x = starts(MODEL, lambda key: {"theta": jax.random.normal(key, (3,)), "tau": 0.5})
        tau = [float(MODEL.constrain(jnp.asarray(point))["tau"]) for point in x.reshape(6, 4)]
        np.testing.assert_allclose(tau, 0.5, rtol=1e-12)
        assert len(np.unique(x[..., 1:])) == 18

    def test_none_draws_from_the_base(self):
        target = pe.Target(normal, np.zeros(2), base=pe.Normal(100.0, 0.1))
        x = starts(target, None)
        assert np.all(np.abs(x - 100) < 1)
        assert len(np.unique(x)) == x.size

    def test_none_draws_from_the_prior(self):
        target = pe.Target(
            example=np.ones(2),
            log_prior=lambda x: -jnp.sum(x),
            log_likelihood=normal,
            sample_prior=lambda key: 7.0 + jax.random.exponential(key, (2,)),
            bounds=(0, None),
        )
        assert np.all(np.exp(starts(target, None)) > 7 - 1e-9)

    def test_chains_and_seeds_differ_but_their_number_does_not_matter(self):
        """Point (c, i) depends on the seed, c and i alone."""
        few, many = starts(PLAIN, np.zeros(2), chains=1), starts(PLAIN, np.zeros(2), chains=3)
        np.testing.assert_array_equal(few, many[:1])
        assert not np.any(starts(PLAIN, np.zeros(2), seed=1) == many[:2])


@pytest.mark.usefixtures("x64")
class TestRetry:
    @pytest.mark.parametrize("wall", [-jnp.inf, jnp.nan, jnp.inf])
    def test_a_density_that_is_finite_in_part_of_space(self, wall):
        """A random start is outside with probability 3/4, and is drawn again until none is."""
        target = pe.Target(lambda x: jnp.where(jnp.all(x > 0.1), normal(x), wall), np.zeros(2))
        x = starts(target, np.full(2, 0.2), chains=4, particles=5)
        assert np.all(x > 0.1)
        assert np.ptp(x) > 0.1, "all points fell back to the centre"

    def test_a_centre_in_a_tiny_allowed_region_is_used_itself(self):
        target = pe.Target(lambda x: jnp.where(jnp.max(jnp.abs(x - 3)) < 1e-6, 0.0, -jnp.inf), np.zeros(2))
        x = starts(target, np.full(2, 3.0))
        assert np.all(np.abs(x - 3) < 1e-6)

    def test_draws_from_the_base_are_repeated(self):
        target = pe.Target(lambda x: jnp.where(x[0] > 1, normal(x), -jnp.inf), np.zeros(2), base=pe.Normal())
        assert np.all(starts(target, None)[..., 0] > 1)

    def test_a_gradient_that_is_not_finite_is_avoided_if_it_is_needed(self):
        """|x|^½ has no gradient at 0: there only the random walk may start."""
        target = pe.Target(lambda x: -jnp.sum(jnp.sqrt(jnp.abs(x))), np.zeros(1))
        batch = np.array([[0.0], [1.0]])
        assert np.all(starts(target, batch)[..., 0] == 1.0)
        np.testing.assert_array_equal(np.unique(starts(target, batch, needs_gradient=False)), [0.0, 1.0])

    def test_bad_entries_of_a_batch_are_passed_over(self):
        target = pe.Target(lambda x: jnp.where(x[0] > 0, normal(x), -jnp.inf), np.zeros(1))
        x = starts(target, np.array([[-1.0], [1.0], [-2.0], [2.0]]), chains=4, particles=1)
        np.testing.assert_array_equal(x.ravel(), [1.0, 1.0, 2.0, 2.0])


class TestRefusals:
    def test_outside_the_bounds_names_the_parameter(self):
        for tau in (0.0, 5.0, -1.0, 6.0):
            with pytest.raises(ValueError, match="'tau'") as error:
                tiny(MODEL, {**POSITION, "tau": tau})
            assert_sentence(error, "init", "(0, 5)", f"got {tau:g}")

    def test_one_of_a_batch_outside_the_bounds(self):
        batch = {"theta": np.zeros((2, 3)), "tau": np.array([1.0, 7.0])}
        with pytest.raises(ValueError, match="'tau'") as error:
            tiny(MODEL, batch)
        assert_sentence(error, "init", "got 7")

    def test_a_function_that_starts_outside(self):
        with pytest.raises(ValueError, match="'tau'") as error:
            tiny(MODEL, lambda key: {"theta": jnp.zeros(3), "tau": -1.0})
        assert_sentence(error, "init")

    @pytest.mark.parametrize(
        "init",
        [
            np.zeros(4),
            {"theta": np.zeros(3)},
            {"theta": np.zeros(2), "tau": 1.0},
            {"theta": np.zeros((2, 3)), "tau": 1.0},
            {"theta": np.zeros((2, 3)), "tau": np.ones(3)},
            {"theta": np.zeros((0, 3)), "tau": np.ones(0)},
            {"theta": np.zeros((1, 1, 3)), "tau": np.ones((1, 1))},
            {"theta": "a", "tau": 1.0},
            {"theta": np.full(3, np.nan), "tau": 1.0},
            "abc",
            {},
            lambda key: None,
            lambda key: {"theta": jnp.zeros(2), "tau": 1.0},
        ],
    )
    def test_wrong_shape_or_structure(self, init):
        with pytest.raises((ValueError, TypeError)) as error:
            tiny(MODEL, init)
        assert_sentence(error, "init")

    @pytest.mark.parametrize("target", [PLAIN, pe.Target(normal, np.zeros(2), base=pe.Base(normal))])
    def test_none_without_a_base_to_draw_from(self, target):
        with pytest.raises(TypeError, match="init") as error:
            tiny(target)
        assert_sentence(error)

    @pytest.mark.parametrize(
        "draw", [lambda key: jnp.zeros(1), lambda key: jnp.zeros(3), lambda key: "a", lambda key: None]
    )
    def test_a_base_whose_sampler_draws_something_else(self, draw):
        """Also one number where two are wanted, which NumPy would spread over both."""
        target = pe.Target(normal, np.zeros(2), base=pe.Base(normal, draw))
        with pytest.raises((ValueError, TypeError)) as error:
            tiny(target)
        assert_sentence(error, "sampler")


class TestPlainFunction:
    """Without a Target, init shows the shape of the position."""

    @pytest.mark.parametrize(
        ("init", "shape"),
        [
            (np.zeros(2), (2,)),
            (jnp.zeros(2), (2,)),
            ([0.0, 0.0], (2,)),
            ((0.0, 0.0), (2,)),
            (np.zeros((5, 2)), (2,)),
            ([[0.0, 0.0], [1.0, 1.0]], (2,)),
            (0.0, ()),
            (np.zeros(()), ()),
        ],
        ids=str,
    )
    def test_arrays_and_lists(self, init, shape):
        """Whatever shape init shows must then be a start of that shape."""
        target, init = target_from(normal, init)
        assert target.parameters[0].shape == shape
        with jax.enable_x64(True):
            x = starts(target, init, chains=1, particles=2)
        assert x.shape == (1, 2, int(np.prod(shape)))

    def test_a_list_of_lists_is_a_batch(self):
        init = [[0.0, 0.5], [1.0, 1.5]]
        result = tiny(normal, init, method=pe.Plain(pe.RandomWalk()), warmup=0, draws=1)
        assert result.unconstrained.shape == (2, 1, 1, 2)

    def test_a_dict_is_one_position(self):
        assert target_from(model, POSITION)[0].names == ("tau", "theta")

    def test_a_function_shows_its_value(self):
        assert target_from(model, lambda key: POSITION)[0].names == ("tau", "theta")

    @pytest.mark.parametrize(
        "init",
        [
            None,
            np.zeros((2, 2, 2)),
            np.zeros(0),
            np.zeros((0, 2)),
            "abc",
            {},
            (),
            [[0.0], [0.0, 1.0]],
            [np.nan],
            object(),
        ],
    )
    def test_refused_by_the_name_the_user_gave(self, init):
        with pytest.raises((ValueError, TypeError)) as error:
            tiny(normal, init)
        assert_sentence(error, "init")

    @pytest.mark.parametrize("function", [None, 3, "abc", np.zeros(2), pe.Normal()])
    def test_target_must_be_a_function(self, function):
        with pytest.raises(TypeError, match="target") as error:
            tiny(function, np.zeros(2))
        assert_sentence(error)
