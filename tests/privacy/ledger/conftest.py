"""An empty place for a ledger, and a ledger with some lines in it."""

import os
from pathlib import Path

import pytest

from privacy.ledger.files import TENTH, create
from tacit.privacy.charges import GaussianCharge
from tacit.privacy.ledger import (
    verify,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Durability is not what these tests are about, and it is slow."""
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@pytest.fixture
def full(path: Path, no_sync: None) -> Path:
    with create(path) as ledger:
        ledger.spend(GaussianCharge(0.01), "a")
        ledger.reserve(TENTH, "b")
        ledger.cancel("b")
    assert verify(path).sound
    return path
