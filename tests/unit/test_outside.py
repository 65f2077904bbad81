"""What is written twice outside the code agrees: versions, pins, and the size of the tree."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import pseudo_extended as pe

ROOT = Path(__file__).parents[2]
MAX_BYTES = 4 * 2**20


def test_pre_commit_has_the_pinned_tools():
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    hooks = dict(re.findall(r'"([\w-]+)(?:\[\w+\])?==([^"]+)"', text))
    assert hooks.keys() == {"ruff", "pyright", "import-linter"}
    assert hooks == {name: pins[name] for name in hooks}


def test_the_version_is_written_once():
    release = re.match(r"\d+\.\d+\.\d+", pe.__version__)
    assert release
    assert f"version: {release[0]}\n" in (ROOT / "CITATION.cff").read_text()
    assert (ROOT / "CHANGELOG.md").read_text().startswith(f"# Changelog\n\n## {release[0]}")
    for project in (ROOT, ROOT / "reproduction"):
        assert "version" in tomllib.loads((project / "pyproject.toml").read_text())["project"]["dynamic"]


def test_the_tree_is_small():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("the size of the tree is counted in a clone only")
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    assert sum(path.stat().st_size for path in files if path.is_file()) < MAX_BYTES
