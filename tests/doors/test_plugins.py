"""The samplers inside other libraries, run by those libraries: their samples, evidence and starts."""

import tomllib
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import pseudo_extended as pe

from ..unit.sentences import assert_sentence

QUICK = {"draws": 300, "warmup": 300, "chains": 2, "seed": 1, "progress": False}


def two_normals(x, y):
    """A normalised log likelihood of two modes on [-5, 5]²; its integral over the uniform prior is 1/100."""
    return np.logaddexp(-0.5 * ((x - 2) ** 2 + y**2) / 0.09, -0.5 * ((x + 2) ** 2 + y**2) / 0.09) - np.log(
        4 * np.pi * 0.09
    )


class TestBilby:
    @pytest.fixture(scope="class")
    def likelihood(self):
        bilby = pytest.importorskip("bilby")

        class TwoNormals(bilby.Likelihood):
            def log_likelihood(self, parameters=None):
                return two_normals(parameters["x"], parameters["y"])

        return TwoNormals()

    def priors(self, **options):
        bilby = pytest.importorskip("bilby")
        return bilby.core.prior.PriorDict(
            {name: bilby.core.prior.Uniform(-5, 5, name, boundary=options.get(name)) for name in ("x", "y")}
        )

    @pytest.mark.slow
    def test_run_by_bilby(self, likelihood, tmp_path):
        bilby = pytest.importorskip("bilby")
        from pseudo_extended.plugins.bilby import PseudoExtended

        options = {**QUICK, "draws": 1000, "warmup": 1000, "outdir": str(tmp_path), "label": "two"}
        # By its name where this library is installed with the entry point; an editable install may be older than it.
        known = {point.name for point in entry_points(group="bilby.samplers")}
        sampler = (
            "pseudo_extended" if "pseudo_extended" in known else PseudoExtended(likelihood, self.priors(), **options)
        )
        given = options if isinstance(sampler, str) else {"outdir": str(tmp_path), "label": "two"}
        result = bilby.run_sampler(likelihood, self.priors(), sampler=sampler, save=False, **given)
        assert abs(result.log_evidence - np.log(0.01)) < min(0.2, 5 * result.log_evidence_err)
        assert abs(np.mean(result.posterior["x"] > 0) - 0.5) < 0.1
        assert abs(result.posterior["y"].std() - 0.3) < 0.05
        assert len(result.posterior) == 2000
        best = result.posterior.loc[result.posterior["log_likelihood"].idxmax()]
        assert best["log_likelihood"] == pytest.approx(two_normals(best["x"], best["y"]))

    def test_is_what_bilby_asks_for(self, likelihood, tmp_path):
        """By the class, without a run: keywords, transform, constraints and periodic boundaries."""
        bilby = pytest.importorskip("bilby")
        from pseudo_extended.plugins.bilby import PseudoExtended

        priors = self.priors(x="periodic")
        priors["sum"] = bilby.core.prior.Constraint(-1, 1)
        priors.conversion_function = lambda parameters: {**parameters, "sum": parameters["x"] + parameters["y"]}
        sampler = PseudoExtended(likelihood, priors, outdir=str(tmp_path), **QUICK)
        assert sampler.kwargs["draws"] == 300
        np.testing.assert_allclose(sampler._transform([0.5, 0.75]), [0.0, 2.5])
        assert sampler._log_likelihood([2.0, -1.5]) == pytest.approx(two_normals(2.0, -1.5))
        assert sampler._log_likelihood([2.0, 0.0]) == -np.inf

    def test_entry_point(self):
        pytest.importorskip("bilby")
        project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
        module, name = project["project"]["entry-points"]["bilby.samplers"]["pseudo_extended"].split(":")
        assert getattr(import_module(module), name).sampler_name == "pseudo_extended"


class TestPypesto:
    @pytest.fixture(scope="class")
    def problem(self):
        pypesto = pytest.importorskip("pypesto")

        def value(x):
            return -float(two_normals(*x))

        def slope(x):
            z = np.array([[x[0] - 2, x[1]], [x[0] + 2, x[1]]]) / 0.09
            log_share = -0.045 * np.sum(z**2, axis=1)
            share = np.exp(log_share - log_share.max())
            return share @ z / share.sum()

        objective = pypesto.Objective(fun=value, grad=slope)
        return pypesto.Problem(objective, lb=[-5.0, -5.0], ub=[5.0, 5.0], x_names=["x", "y"])

    @pytest.fixture(scope="class")
    def optima(self, problem):
        """What a multi-start optimisation finds: both modes, and one bad end."""
        pypesto = pytest.importorskip("pypesto")
        result = pypesto.Result(problem)
        for i, x in enumerate(([2.0, 0.0], [-2.0, 0.0], [5.0, 5.0])):
            end = pypesto.OptimizerResult(id=str(i), x=np.array(x), fval=problem.objective(np.array(x)))
            result.optimize_result.append(end)
        return result

    def test_target_is_the_problem(self, problem, x64):
        from pseudo_extended.plugins.pypesto import target_of

        target = target_of(problem)
        assert target.is_differentiable
        assert list(target.coords[0][1]) == ["x", "y"]
        x = np.array([1.5, 0.3])
        assert float(target.log_likelihood(x)) == pytest.approx(two_normals(*x))
        u = target.unconstrain(x)
        gradient = np.asarray(target.path_gradients(u)[1].delta)
        step = 1e-6 * np.eye(2)
        slopes = [float(target.path_point(u + e).delta - target.path_point(u - e).delta) / 2e-6 for e in step]
        np.testing.assert_allclose(gradient, slopes, rtol=1e-5)

    def test_good_optima_are_the_starts(self, problem, optima):
        from pseudo_extended.plugins.pypesto import PseudoExtendedSampler

        sampler = PseudoExtendedSampler(starts=optima)
        sampler.initialize(problem, np.zeros(2))
        np.testing.assert_allclose(sampler.init, [[2, 0], [-2, 0]])
        plain = PseudoExtendedSampler()
        plain.initialize(problem, np.array([5.0, 0.0]))
        assert np.all(plain.init < 5)

    @pytest.mark.slow
    def test_run_by_pypesto(self, problem, optima):
        sample = pytest.importorskip("pypesto.sample")
        from pseudo_extended.plugins.pypesto import PseudoExtendedSampler

        sampler = PseudoExtendedSampler(starts=optima, chains=2, warmup=500, seed=1, progress=False)
        result = sample.sample(problem, n_samples=1000, sampler=sampler, result=optima)
        trace = result.sample_result.trace_x
        assert trace.shape == (1, 1000, 2)
        assert abs(np.mean(trace[0, :, 0] > 0) - 0.5) < 0.1
        found = sampler.result.log_evidence
        assert abs(found.value - np.log(0.01)) < min(0.2, 5 * found.standard_error)
        assert len(sampler.result.modes()) == 2

    def test_refusals(self, problem):
        pypesto = pytest.importorskip("pypesto")
        from pseudo_extended.plugins.pypesto import PseudoExtendedSampler, target_of

        with pytest.raises(ValueError, match="beta") as refusal:
            PseudoExtendedSampler().sample(10, beta=0.5)
        assert_sentence(refusal, "beta", "0.5")
        with pytest.raises(ValueError, match="starts") as refusal:
            PseudoExtendedSampler(starts=np.zeros((3, 5))).initialize(problem, np.zeros(2))
        assert_sentence(refusal, "starts", "2")
        open_ended = pypesto.Problem(problem.objective, lb=[-np.inf, 0.0], ub=[1.0, 1.0])
        with pytest.raises(ValueError, match="bounds") as refusal:
            target_of(open_ended)
        assert_sentence(refusal, "bounds")


def test_nothing_is_imported_early():
    assert "plugins" not in dir(pe)
