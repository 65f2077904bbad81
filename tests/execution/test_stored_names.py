"""What a store keeps by name: tags of classes, their fields, and the arrays of a chain. None may change unnoticed."""

import json
import warnings
from dataclasses import fields
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

import pseudo_extended as pe
from pseudo_extended.precision import double_precision
from pseudo_extended.run.advance import chain_from, chain_leaves, renamed_leaf
from pseudo_extended.store import codec, migrations, tags
from tests.contracts.test_contracts import INSTRUMENTS, METHODS, TARGET

NAMES = json.loads((Path(__file__).parent / "stored_names.json").read_text())
"""As they are in the stores of users. Add to it; if a name in it must change, say so in store/tags.py."""


def field_names(kind):
    return list(getattr(kind, "_fields", None) or (field.name for field in fields(kind)))


@pytest.mark.parametrize("tag", tags.TAGS)
def test_tags_stand_for_a_class_with_the_fields_that_stores_have(tag):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a name that is deprecated is not where the class is now
        kind = tags.class_of(tag)
    assert tags.tag_of(kind) == tag
    renamed, dropped = tags.RENAMED_FIELDS.get(tag, {}), tags.DROPPED_FIELDS.get(tag, ())
    stored = {renamed.get(name, name) for name in NAMES["fields"][tag] if name not in dropped}
    assert stored | set(tags.ADDED_FIELDS.get(tag, {})) == set(field_names(kind)), (
        f"{kind.__name__} has other fields than in the stores of users: enter the change into RENAMED_FIELDS, "
        "ADDED_FIELDS or DROPPED_FIELDS of store/tags.py"
    )


def test_no_tag_is_lost():
    assert NAMES["fields"].keys() == tags.TAGS.keys()
    assert set(migrations.CLASSES_OF_VERSION_1.values()) <= tags.TAGS.keys()


ROOTS = {
    "bases": pe.bases.AbstractBase,
    "instruments": pe.instruments.AbstractInstrument,
    "kernels": pe.kernels.AbstractKernel,
    "methods": pe.methods.AbstractMethod,
    "stopping": pe.stopping.AbstractStoppingRule,
}


def public_parts():
    """Every public class that `pe.resume` may have to make again."""
    for space, root in ROOTS.items():
        for name, kind in vars(getattr(pe, space)).items():
            if isinstance(kind, type) and issubclass(kind, root) and not name.startswith(("Abstract", "_")):
                yield pytest.param(kind, id=f"{space}.{name}")


@pytest.mark.parametrize("kind", list(public_parts()))
def test_every_public_class_that_a_run_is_made_of_has_a_tag(kind):
    assert tags.tag_of(kind) is not None, f"{kind.__name__} needs a tag in store/tags.py"


def known_leaves(method):
    with double_precision():
        chain = jax.eval_shape(
            lambda x: method.init(jax.random.key(0), TARGET, x), np.zeros((method.num_points, TARGET.dim))
        )
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_flatten_with_path(chain)[0]]


@pytest.mark.parametrize("name", METHODS)
def test_arrays_of_a_chain_have_the_names_that_snapshots_have(name):
    known, renamed = set(known_leaves(METHODS[name])), {renamed_leaf(leaf) for leaf in NAMES["chains"][name]}
    assert renamed - (set(tags.DROPPED_STATE) - known) == known, (
        "the arrays of this method's chain have other names than in the snapshots of users: enter the change into "
        "RENAMED_STATE or DROPPED_STATE of store/tags.py"
    )


@pytest.mark.parametrize("value", [*METHODS.values(), *INSTRUMENTS.values()])
def test_everything_of_ours_is_stored_and_comes_back(value):
    arrays: dict[str, np.ndarray] = {}
    code = json.loads(json.dumps(codec.encode(value, arrays, "method")))
    assert not codec.holds_functions(code)
    assert "pseudo_extended" not in json.dumps(code)  # no module, no path
    again: dict[str, np.ndarray] = {}
    back = codec.decode(code, arrays)
    assert codec.differences(code, arrays, codec.encode(back, again, "method"), again) == []


def test_old_names_of_fields_and_arrays_are_read(monkeypatch, x64):
    code = codec.encode(pe.HMC(3), {}, "kernel")
    old = {"class": code["class"], "fields": {"steps": 3, "colour": "red"}}
    monkeypatch.setitem(tags.RENAMED_FIELDS, "kernel/hmc", {"steps": "num_steps"})
    monkeypatch.setitem(tags.DROPPED_FIELDS, "kernel/hmc", ("colour",))
    monkeypatch.setitem(tags.ADDED_FIELDS, "kernel/hmc", {"target_acceptance": 0.8, "jitter": 0.0})
    kernel = codec.decode(codec.up_to_date(old), {})
    assert (kernel.num_steps, kernel.target_acceptance) == (3, 0.8)
    chain = METHODS["plain"].init(jax.random.key(0), TARGET, np.zeros((1, TARGET.dim)))
    leaves = {name.replace(".state.gradient", ".state.slope"): leaf for name, leaf in chain_leaves(chain).items()}
    with pytest.raises(ValueError, match="are not those of this method"):
        chain_from(leaves, chain)
    monkeypatch.setitem(tags.RENAMED_STATE, ".state.slope", ".state.gradient")
    np.testing.assert_array_equal(chain_from(leaves, chain).state.gradient, chain.state.gradient)


def test_hmc_of_older_stores_has_the_jitter_that_its_method_gave_it():
    def jitter_of(method):
        code = codec.encode(method, {}, "method")
        del code["fields"]["kernel"]["fields"]["jitter"]
        return codec.up_to_date(code)["fields"]["kernel"]["fields"]["jitter"]

    assert jitter_of(pe.AdaptivePseudoExtended(3, pe.HMC(3))) == 0.4
    assert jitter_of(pe.Plain(pe.HMC(3))) == 0.0


def test_format_1_named_classes_by_their_modules():
    arrays: dict[str, np.ndarray] = {}
    code = codec.encode(METHODS["index Gibbs"], arrays, "method")
    places = {tag: f"pseudo_extended.{place}" for place, tag in migrations.CLASSES_OF_VERSION_1.items()}
    old = json.dumps(code)
    for tag, place in places.items():
        old = old.replace(f'"class": "{tag}"', f'"class": "{place}"')
    assert '"pseudo_extended.methods.index_gibbs:IndexGibbs"' in old
    content = {"version": 1, "method": json.loads(old), "example": None}
    assert migrations.from_version_1(content)["method"] == json.loads(json.dumps(code))


class Scaled(eqx.Module):
    factor: float


def test_a_class_of_the_user_is_stored_under_the_tag_that_was_registered(monkeypatch):
    monkeypatch.setattr(tags, "_registered", {})
    assert codec.encode(Scaled(2.0), {}, "kernel") == {"missing": "kernel", "of": "Scaled"}
    pe.register_class("my-lab/scaled", Scaled)
    code = codec.encode(Scaled(2.0), {}, "kernel")
    assert code == {"class": "my-lab/scaled", "fields": {"factor": 2.0}}
    assert codec.decode(code, {}) == Scaled(2.0)
    with pytest.raises(ValueError, match=r"tag must look like 'my-lab/my-kernel', in lower case; got 'Mine'"):
        pe.register_class("Mine", Scaled)
    with pytest.raises(ValueError, match="must not begin with kernel/, which is this library's"):
        pe.register_class("kernel/mine", Scaled)
    with pytest.raises(ValueError, match="is registered for Scaled already; got HMC"):
        pe.register_class("my-lab/scaled", pe.HMC)
    with pytest.raises(TypeError, match=r"kind must be an equinox\.Module or a NamedTuple class; got <class 'dict'>"):
        pe.register_class("my-lab/dict", dict)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ({"class": "os:system", "fields": {}}, "class 'os:system', which this version does not know"),
        ({"class": ["x"], "fields": {}}, "which this version does not know"),
        ({"class": "kernel/hmc", "fields": {"num_steps": 3}}, "its HMC has other fields"),
        (
            {"class": "kernel/hmc", "fields": {"num_steps": "many", "jitter": 0.0, "target_acceptance": 0.8}},
            "num_steps of its HMC cannot be 'many'",
        ),
        ({"array": "nowhere", "jax": False}, "there is no array 'nowhere'"),
        ({"dict": [1, 2]}, "is not the code of a value"),
        ([1], "is not the code of a value"),
        ({"surprise": 1}, "is not the code of a value"),
    ],
)
def test_a_code_that_we_did_not_write_is_refused(code, sentence):
    with pytest.raises(ValueError, match=sentence):
        codec.decode(code, {})


def test_a_deep_code_is_refused():
    code: object = 1
    for _ in range(codec.MAX_DEPTH + 2):
        code = {"list": [code]}
    with pytest.raises(codec.CodeError, match="more than 50 deep"):
        codec.decode(code, {})
