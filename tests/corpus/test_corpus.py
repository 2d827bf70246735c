"""Every broken mechanism is caught by its detector, and the shipped one is not."""

from collections import Counter
from pathlib import Path

import pytest

from corpus import Mutant
from corpus.catalogue import AUDIT, CORPUS

README = " ".join((Path(__file__).resolve().parents[2] / "README.md").read_text().split())


@pytest.mark.parametrize("mutant", CORPUS, ids=lambda mutant: mutant.name)
def test_the_detector_fires(mutant: Mutant) -> None:
    assert mutant.detector.fires(mutant.broken), mutant.mistake


SHIPPED = {(mutant.detector.fires, mutant.shipped): mutant for mutant in CORPUS}


@pytest.mark.parametrize("mutant", SHIPPED.values(), ids=lambda mutant: mutant.name)
def test_the_detector_is_silent_on_the_shipped_code(mutant: Mutant) -> None:
    assert not mutant.detector.fires(mutant.shipped), mutant.mistake


def test_every_mistake_has_a_name_of_its_own() -> None:
    assert len({mutant.name for mutant in CORPUS}) == len(CORPUS) >= 35


def test_the_readme_counts_what_catches_what() -> None:
    """What to write there if this fails is in ``said``."""
    by = Counter(mutant.detector.name for mutant in CORPUS)
    audited = by.pop(AUDIT)
    others = ", ".join(f"{name} ({count})" for name, count in by.most_common())
    said = f"it catches {audited} of the {len(CORPUS)} mistakes in a corpus of broken mechanisms"
    assert said in README
    assert f"the other {len(CORPUS) - audited} are caught by other checks: {others}." in README
