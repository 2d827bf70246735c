"""The pages of the mapping file and of the sweep file: every key, and rules that hold."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tacit import InvalidInput
from tacit.logs import mapping
from tacit_lab.sweep import spec

ROOT = Path(__file__).resolve().parents[2]
TABLES = (mapping._File, mapping._Data, mapping._Budget, mapping._Reward, mapping._About)
KEYS = {
    "mapping_file": {*(f.name for t in (*TABLES, mapping._Column) for f in fields(t))},
    "sweep_file": {*(f.name for t in (spec.SweepCase, spec.Choose) for f in fields(t))},
}
KEYS["mapping_file"] |= set(mapping.ROLES)
KEYS["sweep_file"] |= {"checkpoints", "modules", "cases", "choose"}


def page(name: str) -> tuple[str, str]:
    """The page, and the example that it includes."""
    text = (ROOT / "docs" / "reference" / f"{name}.md").read_text()
    (path,) = re.findall(r"```\{literalinclude\} (\S+)", text)
    return text, (ROOT / "docs" / "reference" / path).read_text()


@pytest.mark.parametrize("name", KEYS)
def test_every_key_stands_in_the_example_or_on_the_page(name: str) -> None:
    text, example = page(name)
    missing = {key for key in KEYS[name] if not re.search(rf"\b{key}\b", example + text)}
    assert not missing


def test_the_examples_are_those_that_init_writes_and_can_be_read() -> None:
    _, text = page("mapping_file")
    assert mapping.make_mapping(tomllib.loads(text)).name == "steps-2026"
    _, text = page("sweep_file")
    assert spec.parse(text, Path("study.toml")).choose is not None


def changed(path: str, value: Any) -> dict[str, Any]:
    """The example with one value changed, or with a part left out where it is None."""
    data: Any = tomllib.loads(page("mapping_file")[1])
    *way, last = path.split(".")
    place = data
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [("state.0.bins", [1]), ("state.0.values", None), ("action.values", ["tip", "TIP "])],
    ids=["two kinds of cells", "none", "labels that differ in case"],
)
def test_rules_of_the_mapping_file_are_kept(path: str, value: Any) -> None:
    with pytest.raises(InvalidInput):
        mapping.make_mapping(changed(path, value))


def test_what_the_mapping_page_says_of_names_ends_and_ranges() -> None:
    plain = mapping.make_mapping(
        tomllib.loads(page("mapping_file")[1]) | {"reward": {"range": [2, 3]}}
    )
    assert "calm / < 1" in plain.task.labels["states"] and plain.reward_range == (2.0, 3.0)
    ended = changed("columns.ends", "quit") | {"reward": {"range": [2, 3]}}
    mapped = mapping.make_mapping(ended)
    assert mapped.task.labels["states"][-1] == "ended" and mapped.reward_range == (0.0, 3.0)


@pytest.mark.parametrize("wrong", ["people = 300", "seeds = [1_000_000]"])
def test_rules_of_the_sweep_file_are_kept(wrong: str) -> None:
    text = page("sweep_file")[1].replace("seeds = 5", "seeds = [0]", 1)
    with pytest.raises(InvalidInput):
        spec.parse(text.replace("seeds = [0]", wrong, 1), Path("study.toml"))


def test_agents_without_privacy_appear_once() -> None:
    text = 'episodes = 100\nepsilon = [1, 2]\nproblems = ["river-swim"]\n'
    text += 'agents = ["psrl", "tacit-local"]\n'
    assert len(spec.plan(spec.parse(text, Path("study.toml")))) == 3
