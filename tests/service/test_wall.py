"""The wall inside the service: who may touch trajectories, secrets and keys, by imports."""

import ast
import re
from pathlib import Path

import tacit_service

FOLDER = Path(tacit_service.__file__).parent
RAW = ("tacit.trajectory", "tacit.statistics")
SECRET = ("tacit_service.storage.vault", "tacit_service.modes.joint")


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def users(*modules: str) -> set[str]:
    return {
        str(path.relative_to(FOLDER))
        for path in FOLDER.rglob("*.py")
        if any(name == m or name.startswith(f"{m}.") for name in imported(path) for m in modules)
    }


def test_only_the_curator_touches_trajectories() -> None:
    """And its memory of what people have taught; an audit makes people up."""
    assert users(*RAW) == {"audit.py", "modes/joint.py", "modes/memory.py"}
    assert users("tacit_service.modes.memory") == {"modes/joint.py", "storage/erase.py"}


def test_only_the_collector_reaches_the_curator_and_its_secrets() -> None:
    readers = users(*SECRET)
    assert readers == {
        "collector.py",
        "storage/identity.py",
        "modes/joint.py",
        "modes/memory.py",
        "storage/erase.py",
    }
    erasing = (FOLDER / "storage" / "erase.py").read_text()
    assert set(re.findall(r"Vault\.(\w+)", erasing)) == {"names", "delete", "delete_under"}


def test_the_service_draws_from_no_seeded_noise() -> None:
    for path in FOLDER.rglob("*.py"):
        assert "SimulatedNoise" not in path.read_text(), path.name
