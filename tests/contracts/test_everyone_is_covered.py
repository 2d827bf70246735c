"""A planner, privatizer, randomizer or statistic without a contract test cannot be merged."""

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import tacit.agents
import tacit.planners
import tacit.privacy
import tacit.statistics

TESTS = Path(__file__).resolve().parents[1]


def subjects(contract: str) -> set[str]:
    """Names assigned to ``subject`` in classes below the contract, anywhere in the tests."""
    bases: dict[str, list[str]] = {}
    named: dict[str, str] = {}
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = [ast.unparse(base) for base in node.bases]
                for line in node.body:
                    if not isinstance(line, ast.AnnAssign) or line.value is None:
                        continue
                    if ast.unparse(line.target) == "subject":
                        named[node.name] = ast.unparse(line.value)

    def below(name: str) -> bool:
        return name == contract or any(below(base) for base in bases.get(name, []))

    return {subject for name, subject in named.items() if below(name)}


def implementations(package, method: str) -> set[str]:
    found = set()
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        for name, item in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            unfinished = getattr(item, "_is_protocol", False) or inspect.isabstract(item)
            if item.__module__ == module.name and hasattr(item, method) and not unfinished:
                found.add(name)
    return found


@pytest.mark.parametrize(
    ("package", "method", "contract"),
    [
        (tacit.planners, "plan", "PlannerContract"),
        (tacit.privacy, "absorb", "PrivatizerContract"),
        (tacit.privacy, "encode_secure", "RandomizerContract"),
        (tacit.statistics, "sensitivity", "StatisticContract"),
    ],
)
def test_every_implementation_has_a_contract_test(package, method, contract) -> None:
    there = implementations(package, method)
    assert there, "the search itself must find something"
    assert there - subjects(contract) == set()


@pytest.mark.parametrize("method", ["plan", "absorb", "encode_secure", "sensitivity"])
def test_parts_of_agents_stand_in_their_own_folders(method) -> None:
    """A planner beside its agent would owe nothing, and could import what leads to raw data."""
    assert implementations(tacit.agents, method) == set()
