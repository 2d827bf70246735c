"""What a ledger does, and that one at a time writes into it."""

import json
import os
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from privacy.ledger.files import BUDGET, TENTH, create, head_of, line_of
from tacit.errors import InvalidInput
from tacit.privacy.charges import CopiesCharge, GaussianCharge, PureCharge
from tacit.privacy.filter import BudgetExhausted, Cost
from tacit.privacy.ledger import (
    AlreadyCharged,
    Ledger,
    LedgerUnavailable,
    verify,
)
from tacit.privacy.ledger_lines import FORMAT


def test_a_reopened_ledger_is_the_ledger_that_was_closed(path: Path) -> None:
    with create(path, unit="participation", relation="add-remove-one", participations=3) as ledger:
        entry = ledger.spend(GaussianCharge(0.01), "counter")
        assert entry == ledger.entries["counter"] and entry.status == "committed"
        assert ledger.reserve(TENTH, "later").status == "reserved"
        ledger.reserve(TENTH, "never")
        ledger.cancel("never")
        before, entries = ledger.as_json(), ledger.entries
    with Ledger.open(path, task="task", head=before["head"]) as ledger:
        assert ledger.as_json() == before and ledger.entries == entries
        assert ledger.filter.spent == Cost(mu_squared=Fraction(1, 100))
        assert ledger.filter.reserved == Cost(epsilon=Fraction(1, 10))
        assert ledger.commit("later").status == "committed"
        ledger.spend(TENTH, "never")  # a cancelled node is free
        assert ledger.filter.spent == Cost(Fraction(1, 100), Fraction(2, 10))
    assert before == {
        "format": FORMAT,
        "budget": {"epsilon": 1.0, "delta": 1e-5, "pure": 0.5, "mu_squared": 0.02},
        "unit": "participation",
        "relation": "add-remove-one",
        "participations": 3,
        "task": "task",
        "records": 5,
        "spent": {"mu_squared": 0.01, "epsilon": 0.0},
        "reserved": {"mu_squared": 0.0, "epsilon": 0.1},
        "remaining": {"mu_squared": 0.01, "epsilon": 0.4},
        "closed": False,
        "head": before["head"],
    }


def test_the_bytes_on_disk_are_the_format_and_do_not_change(path: Path) -> None:
    with create(path, clock=lambda: "2030-01-01T00:00:00Z") as ledger:
        ledger.spend(CopiesCharge(TENTH, 2), "a")
    header = {
        "format": "tacit-ledger-1",
        "budget": {"epsilon": 1.0, "delta": 1e-5, "pure": 0.5, "mu_squared": 0.02},
        "unit": "user",
        "relation": "replace-one",
        "participations": 1,
        "task": "task",
        "sequence": 0,
        "kind": "header",
        "time": None,
    }
    reserve = {
        "sequence": 1,
        "kind": "reserve",
        "time": "2030-01-01T00:00:00Z",
        "node": "a",
        "charge": {"kind": "copies", "charge": {"kind": "pure", "epsilon": 0.1}, "count": 2},
        "cost": {"mu_squared": 0.0, "epsilon": 0.2},
    }
    commit = {"sequence": 2, "kind": "commit", "time": "2030-01-01T00:00:00Z", "node": "a"}
    raw, previous = b"", "0" * 64
    for content in (header, reserve, commit):
        raw += line_of(content, previous)
        previous = json.loads(raw.splitlines()[-1])["hash"]
    assert path.read_bytes() == raw
    assert previous == "6d117af0d37c5ca29cc002f5b69acd6360a24a5f38f4b2a2faae9997a16dd734"
    assert head_of(path).read_bytes() == line_of({"format": FORMAT, "length": len(raw)}, previous)


def test_a_refusal_is_recorded_and_outlives_the_process(path: Path) -> None:
    with create(path) as ledger:
        ledger.reserve(PureCharge(0.4), "held")
        with pytest.raises(BudgetExhausted, match="now closed for good"):
            ledger.spend(GaussianCharge(0.03), "too much")
        with pytest.raises(BudgetExhausted, match="earlier request"):
            ledger.spend(PureCharge(1e-9), "tiny")
        assert ledger.filter.closed and "too much" not in ledger.entries
        records = ledger.as_json()["records"]
    for _ in range(2):
        with Ledger.open(path) as ledger:
            assert ledger.filter.closed and ledger.as_json()["records"] == records
            with pytest.raises(BudgetExhausted, match="earlier request"):
                ledger.spend(PureCharge(1e-9), "tiny")
    with Ledger.open(path) as ledger:
        assert ledger.commit("held").status == "committed"  # paid for before the refusal
    assert json.loads(path.read_bytes().splitlines()[2])["kind"] == "close"


def test_a_node_is_charged_once_and_a_replay_is_not_a_charge(path: Path) -> None:
    with create(path) as ledger:
        first = ledger.spend(TENTH, "node 1")
        for again in (ledger.spend, ledger.reserve):
            with pytest.raises(AlreadyCharged, match="'node 1' is committed already"):
                again(TENTH, "node 1")
        assert ledger.spend(TENTH, "node 1", replay=True) == first
        with pytest.raises(AlreadyCharged):
            ledger.spend(PureCharge(0.2), "node 1", replay=True)
        for settle in (ledger.commit, ledger.cancel):
            with pytest.raises(AlreadyCharged, match="committed already"):
                settle("node 1")
            with pytest.raises(AlreadyCharged, match="not reserved"):
                settle("nowhere")
        ledger.reserve(TENTH, "node 2")
        assert ledger.as_json()["records"] == 3
    with Ledger.open(path) as ledger:
        assert ledger.spend(TENTH, "node 1", replay=True) == first
        assert ledger.spend(TENTH, "node 2", replay=True).status == "committed"  # was interrupted
        assert ledger.filter.spent == Cost(epsilon=Fraction(2, 10))
        assert ledger.spend(TENTH, "node 3", replay=True).status == "committed"


def test_the_charge_is_on_disk_when_spend_returns(path: Path) -> None:
    with create(path) as ledger:
        ledger.spend(TENTH, "a")
        assert verify(path).summary["spent"] == {"mu_squared": 0.0, "epsilon": 0.1}


def test_questions_change_nothing(path: Path) -> None:
    with create(path) as ledger:
        raw = path.read_bytes()
        copy = ledger.filter
        copy.commit(copy.reserve(PureCharge(0.4)))
        with pytest.raises(BudgetExhausted):
            copy.reserve(PureCharge(0.9))
        assert ledger.filter.spent == Cost() and not ledger.filter.closed
        assert path.read_bytes() == raw


@pytest.mark.parametrize("node", ["", "x" * 201, "line\nbreak", "\x00", None, 7])
def test_nodes_have_printable_names(path: Path, node: object) -> None:
    with create(path) as ledger, pytest.raises(InvalidInput, match="node = "):
        ledger.spend(TENTH, node)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options",
    [
        {"task": ""},
        {"unit": "cohort"},
        {"relation": "implied"},
        {"participations": 0},
    ],
)
def test_a_ledger_is_not_created_from_nonsense(path: Path, options: dict) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        Ledger.create(path, **{"budget": BUDGET, "task": "task", **options})
    assert not path.exists()


def test_a_charge_must_be_a_charge(path: Path) -> None:
    with create(path) as ledger, pytest.raises(InvalidInput, match="charge = 0.1"):
        ledger.spend(0.1, "a")  # type: ignore[arg-type]


def test_a_ledger_is_never_created_over_another(path: Path) -> None:
    create(path).close()
    with pytest.raises(InvalidInput, match="a ledger was here"):
        create(path)
    head_of(path).unlink()
    with pytest.raises(InvalidInput, match="ledger exists"):
        create(path)
    with pytest.raises(InvalidInput, match="no ledger at missing"):
        Ledger.open(path.with_name("missing"))


def test_a_ledger_of_another_task_is_refused(path: Path) -> None:
    create(path).close()
    with pytest.raises(InvalidInput, match="another task"):
        Ledger.open(path, task="other")
    Ledger.open(path, task="task").close()


def test_the_report_is_for_people(path: Path) -> None:
    with create(path) as ledger:
        ledger.spend(TENTH, "a")
        report = verify(path)  # while it is open elsewhere
        assert report.sound and report.as_json()["summary"] == ledger.as_json()
        assert str(report) == (
            f"Sound: 2 records, head {ledger.head}, task task.\n"
            "Budget per user (replace-one, 1 participation(s)): epsilon = 1, delta = 1e-05 "
            "(mu^2 0.02 and epsilon 0.5).\n"
            "Spent: mu^2 0 and epsilon 0.1.\nReserved: mu^2 0 and epsilon 0.\nOpen."
        )
    path.write_bytes(path.read_bytes() + b"{")
    assert str(verify(path)).endswith("\n1 bytes of an unfinished append follow.")
    path.write_bytes(path.read_bytes()[:-2])
    assert str(verify(path)).startswith("DAMAGED: ledger has ")
    assert not verify(path.with_name("missing")).sound


def test_only_one_opener_may_write(path: Path) -> None:
    with create(path):
        with pytest.raises(LedgerUnavailable, match="open already"):
            Ledger.open(path)
        code = "import sys; from tacit.privacy.ledger import Ledger; Ledger.open(sys.argv[1])"
        other = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
        )
        assert other.returncode == 1 and "LedgerUnavailable" in other.stderr
    Ledger.open(path).close()


def test_closed_and_forked_ledgers_are_unusable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = create(path)
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        with pytest.raises(LedgerUnavailable, match="before a fork"):
            ledger.spend(TENTH, "a")
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerUnavailable, match="was closed; open it again"):
        ledger.spend(TENTH, "a")


def test_threads_take_turns(path: Path, no_sync: None) -> None:
    with create(path) as ledger:

        def work(name: str) -> None:
            for i in range(10):
                ledger.spend(GaussianCharge(1e-4), f"{name}{i}")

        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ledger.filter.spent == Cost(mu_squared=Fraction(40, 10**4))
        assert verify(path).summary == ledger.as_json()
