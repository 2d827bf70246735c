"""What all tests share: one seed for every property test, how kernels are compiled, which files
begin, and the command in this process.

A green run is green again; ``HYPOTHESIS_PROFILE=explore pytest`` looks for new counterexamples.
"""

import gc
import os
import sys

import pytest
from hypothesis import settings

from compiled import COMPILED

if "NUMBA_OPT" not in os.environ:
    os.environ.update(COMPILED)

from tacit.cli import main as cli  # noqa: E402

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


LONGEST = """
service/test_kills golden/test_frozen docs/test_first_hour golden/test_mixture
corpus/test_corpus golden/test_tabular simulation/test_resume cli/test_main
auditing/test_agent auditing/test_neighbours docs/test_site
lab/papers/test_figures service/test_audit lab/cases/test_studies
auditing/test_lifetimes contracts/test_own_mechanism test_anywhere docs/test_readme
privacy/joint/test_counted golden/test_control service/rehearsal/test_virtual_fleet
""".split()
"""Files of a quarter of a minute and more, which begin first, so that two workers end together."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    rank = {f"tests/{name}.py": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.nodeid.partition("::")[0], len(rank)))
    gc.freeze()  # thousands of tests that no collector need look at again and again
