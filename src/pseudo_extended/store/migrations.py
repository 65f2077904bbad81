"""Migrations from each older format of the manifest to the next."""

from typing import Any

CLASSES_OF_VERSION_1 = {
    "bases:Base": "base/given",
    "bases:Normal": "base/normal",
    "bases:NormalMixture": "base/normal-mixture",
    "instruments.density:Density": "instrument/density",
    "instruments.ladder:Fixed": "instrument/fixed",
    "instruments.ladder:Ladder": "instrument/ladder",
    "instruments.per_particle:PerParticle": "instrument/per-particle",
    "instruments.stratified:Stratified": "instrument/stratified",
    "instruments.tempered:Tempered": "instrument/tempered",
    "kernels.composed:Cycle": "kernel/cycle",
    "kernels.composed:Mixture": "kernel/mixture",
    "kernels.hamiltonian:HMC": "kernel/hmc",
    "kernels.hamiltonian:MALA": "kernel/mala",
    "kernels.hamiltonian:NUTS": "kernel/nuts",
    "kernels.random_walk:RandomWalk": "kernel/random-walk",
    "methods.annealed_importance:AnnealedImportance": "method/annealed-importance",
    "methods.continuous_tempering:ContinuousTempering": "method/continuous-tempering",
    "methods.energy_ladder:EnergyLadder": "part/energy-ladder",
    "methods.equi_energy:EquiEnergy": "method/equi-energy",
    "methods.index_gibbs:IndexGibbs": "method/index-gibbs",
    "methods.index_parameters:IndexParameters": "part/index-parameters",
    "methods.parallel_tempering:ParallelTempering": "method/parallel-tempering",
    "methods.plain:Plain": "method/plain",
    "methods.pseudo_extended:PseudoExtended": "method/pseudo-extended",
    "methods.repelling_attracting:RepellingAttracting": "method/repelling-attracting",
    "methods.simulated_tempering:SimulatedTempering": "method/simulated-tempering",
    "path:Path": "part/path",
    "warmup.windows:WindowedWarmup": "part/windowed-warmup",
}
"""Format 1 kept classes by where they were in the package; these are the places of its last version."""


def from_version_1(content: dict[str, Any]) -> dict[str, Any]:
    """Classes by their tags; and it is marked that no snapshot says whose chunks it counts on."""
    tagged = {name: _with_tags(content[name]) for name in ("method", "learned", "example") if name in content}
    return content | tagged | {"version": 2, "chunks_sealed": False}


def from_version_2(content: dict[str, Any]) -> dict[str, Any]:
    """What preparation found is in one place; and it is marked that the chunks have no seals."""
    content = dict(content)
    content.pop("chunks_sealed", None)
    if "learned" in content:
        content["prepared"] = {
            "method": content.pop("learned"),
            "description": content["description"],
            "notes": content.pop("notes"),
            "layout": content.pop("layout"),
            "report": content.pop("report", None),
            "num_evaluations": content.pop("pilot_evaluations", None),
        }
    content.setdefault("stopped", "running")
    return content | {"version": 3, "sealed": False}


def _with_tags(code: Any) -> Any:
    if isinstance(code, list):
        return [_with_tags(entry) for entry in code]
    if not isinstance(code, dict):
        return code
    code = {name: _with_tags(entry) for name, entry in code.items()}
    if isinstance(code.get("class"), str):
        place = code["class"].removeprefix("pseudo_extended.")
        code["class"] = CLASSES_OF_VERSION_1.get(place, code["class"])
    return code
