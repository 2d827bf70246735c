"""Every broken mechanism is caught by its detector, and the shipped one is not."""

from collections import Counter
from pathlib import Path

import pytest

from auditing import small
from corpus import Mutant
from corpus.agents import ForgottenParticipations, LessNoiseAgent, audited
from corpus.catalogue import AUDIT, CORPUS

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
PAGE = " ".join((RESULTS / "audits.md").read_text().split())


@pytest.mark.parametrize("mutant", CORPUS, ids=lambda mutant: mutant.name)
def test_the_detector_fires(mutant: Mutant) -> None:
    assert mutant.detector.fires(mutant.broken), mutant.mistake


SHIPPED = {(mutant.detector.fires, mutant.shipped): mutant for mutant in CORPUS}


@pytest.mark.parametrize("mutant", SHIPPED.values(), ids=lambda mutant: mutant.name)
def test_the_detector_is_silent_on_the_shipped_code(mutant: Mutant) -> None:
    assert not mutant.detector.fires(mutant.shipped), mutant.mistake


@pytest.mark.parametrize("name", small.private_agents())
def test_half_the_noise_is_refuted(name: str) -> None:
    found = audited(LessNoiseAgent, name)
    assert found.verdict == "violated"
    assert any(report.verdict == "violated" for report in found.reports)  # seen, not worked out


@pytest.mark.parametrize("name", small.private_agents())
def test_a_participation_that_is_not_paid_for_is_refuted(name: str) -> None:
    found = audited(ForgottenParticipations, name)
    assert any(report.verdict == "violated" for report in found.reports)
    if found.exact_epsilon is not None and name != "shuffle-obi":
        assert found.exact_epsilon == pytest.approx(2 * found.reports[0].claimed_epsilon)


def test_every_mistake_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in CORPUS}) == len(CORPUS) >= 35


def test_the_page_of_audits_counts_what_catches_what() -> None:
    """What to write there if this fails is in ``said``."""
    by = Counter(mutant.detector.name for mutant in CORPUS)
    audited = by.pop(AUDIT)
    others = ", ".join(f"{name} ({count})" for name, count in by.most_common())
    said = f"it catches {audited} of the {len(CORPUS)} mistakes in a corpus of broken mechanisms"
    assert said in PAGE
    assert f"the other {len(CORPUS) - audited} are caught by other checks: {others}." in PAGE
