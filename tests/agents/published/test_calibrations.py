"""The three calibrations mean the same for every agent that has them."""

import re
from pathlib import Path

import pytest

import tacit
from auditing.small import PROBLEMS, fitting
from tacit.agents import agents
from tacit.agents.published import CALIBRATIONS, PublishedAgent
from tacit.experiment import bind

PUBLISHED = [
    entry.name
    for entry in agents
    if issubclass(entry.factory, PublishedAgent)  # type: ignore[arg-type]
]
PRIVATE = [name for name in PUBLISHED if "epsilon" in agents.entry(name).parameters]


def options(name: str, epsilon: float, delta: float) -> dict[str, float]:
    takes = agents.entry(name).parameters
    asked = {"epsilon": epsilon}
    if takes["delta"].default > 0.0:
        asked["delta"] = delta
    return asked


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_paper_is_the_default(name: str) -> None:
    entry = agents.entry(name)
    assert entry.parameters["calibration"].default == "corrected"
    assert list(entry.factory.calibrations) == list(CALIBRATIONS)
    assert all(0 < len(words) < 200 for words in entry.factory.calibrations.values())


def test_the_words_are_explained_on_one_page() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "catalogue.md"
    text = re.sub(r"\s+", " ", page.read_text())
    for word, meaning in CALIBRATIONS.items():
        assert re.search(rf"- `{word}`[^-]*{re.escape(meaning)}", text), word


@pytest.mark.parametrize("delta", [1e-5, 0.01])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("name", PRIVATE)
def test_corrected_gives_what_is_asked_for(name: str, epsilon: float, delta: float) -> None:
    asked = options(name, epsilon, delta)
    for problem in fitting(name):
        said = bind(PROBLEMS[problem], tacit.agent(name, **asked), 300).guarantee
        assert said.delta_at_requested_epsilon <= asked.get("delta", 0.0) * (1 + 1e-6) + 1e-15
        assert said.epsilon <= epsilon * (1 + 1e-6)
