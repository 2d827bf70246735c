"""What all tests share: one seed for every property test, and the command in this process.

A green run is green again; ``HYPOTHESIS_PROFILE=explore pytest`` looks for new counterexamples.
"""

import os
import sys

import pytest
from hypothesis import settings

from tacit.cli import main as cli

settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


class Output:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Output:
        monkeypatch.setattr(sys, "argv", ["tacit", *words])
        with pytest.raises(SystemExit) as leave:
            cli.main()
        captured = capsys.readouterr()
        return Output(leave.value.code, captured.out, captured.err)

    return run
