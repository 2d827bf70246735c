"""Promises about the repository itself."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import tacit

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_one_version_everywhere() -> None:
    assert tacit.__version__ == metadata.version("tacit")
    assert PROJECT["project"]["dynamic"] == ["version"]


def test_constraints_pin_everything_and_hold_no_addresses() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.+!-]+", line) for line in lines)
    pinned = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines}
    wanted = PROJECT["project"]["dependencies"] + [
        need for extra in PROJECT["project"]["optional-dependencies"].values() for need in extra
    ]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", need)[0]).lower() for need in wanted}
    assert names - {"tacit"} <= pinned


def test_the_package_is_typed_and_licensed() -> None:
    assert (ROOT / "src" / "tacit" / "py.typed").exists()
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert PROJECT["tool"]["mypy"]["strict"] is True
    assert PROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"] == ["error"]


def test_contributing_tells_how_to_add_each_kind() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for heading in ("## Add a problem", "## Add an agent", "## Add a mechanism"):
        assert heading in text
    for path in re.findall(r"`((?:src|tests|examples)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path
