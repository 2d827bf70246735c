"""Whatever is changed in the files of a ledger is noticed."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privacy.ledger.files import TENTH, copy_to, forge, head_of, line_of
from tacit.privacy.ledger import (
    Ledger,
    LedgerDamaged,
    verify,
)
from tacit.privacy.ledger_lines import FORMAT


@pytest.mark.parametrize("mask", [0x01, 0x20])
def test_flipping_any_byte_of_either_file_is_noticed(full: Path, mask: int) -> None:
    for file in (full, head_of(full)):
        raw = file.read_bytes()
        for i in range(len(raw)):
            file.write_bytes(raw[:i] + bytes([raw[i] ^ mask]) + raw[i + 1 :])
            assert not verify(full).sound, (file.name, i)
        file.write_bytes(raw)
    assert verify(full).sound


def test_adding_and_dropping_bytes_is_noticed(full: Path) -> None:
    for file in (full, head_of(full)):
        raw = file.read_bytes()
        for i in range(len(raw)):
            changed = raw[:i] + raw[i + 1 :] if i % 2 else raw[:i] + b" " + raw[i:]
            file.write_bytes(changed)
            assert not verify(full).sound, (file.name, i)
        file.write_bytes(raw)


def test_cutting_acknowledged_bytes_is_always_refused(full: Path) -> None:
    for file in (full, head_of(full)):
        raw = file.read_bytes()
        for length in range(len(raw)):
            file.write_bytes(raw[:length])
            with pytest.raises(LedgerDamaged):
                Ledger.open(full)
        file.write_bytes(raw)
    head_of(full).unlink()
    with pytest.raises(LedgerDamaged, match="head is missing"):
        Ledger.open(full)


@pytest.mark.parametrize(
    "shuffle",
    [
        lambda lines: [lines[0], lines[2], lines[1], *lines[3:]],
        lambda lines: [*lines[:2], lines[1], *lines[2:]],
        lambda lines: [*lines[:3], *lines[4:]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: lines[1:],
        lambda lines: [*lines[:-1], lines[-1][:-1] + b" \n"],
    ],
    ids=["swapped", "doubled", "dropped", "appended", "headless", "respelled"],
)
def test_moving_whole_lines_is_refused(full: Path, shuffle: Callable) -> None:
    lines = full.read_bytes().splitlines(keepends=True)
    raw = b"".join(shuffle(lines))
    full.write_bytes(raw)
    with pytest.raises(LedgerDamaged):
        Ledger.open(full)
    last = json.loads(lines[-1])["hash"]
    head_of(full).write_bytes(line_of({"format": FORMAT, "length": len(raw)}, last))
    with pytest.raises(LedgerDamaged):  # also with a head made to fit
        Ledger.open(full)


def test_a_line_that_is_sound_in_itself_cannot_be_slipped_in(full: Path) -> None:
    lines = full.read_bytes().splitlines(keepends=True)
    other = json.loads(lines[1])
    previous = other.pop("previous")
    del other["hash"]
    lines[1] = line_of({**other, "node": "b"}, previous)
    assert len(lines[1]) == len(full.read_bytes().splitlines(keepends=True)[1])
    full.write_bytes(b"".join(lines))
    with pytest.raises(LedgerDamaged, match="line 3: number 2 here: a line is missing"):
        Ledger.open(full)


def test_another_history_of_the_same_length_does_not_fit_the_head(full: Path) -> None:
    head = head_of(full).read_bytes()
    forge(full, lambda records: records[0].update(task="tusk"))
    assert verify(full).sound
    head_of(full).write_bytes(head)
    with pytest.raises(LedgerDamaged, match="does not end where its head file says"):
        Ledger.open(full)


def change(i: int, **fields: object) -> Callable[[list[dict[str, Any]]], object]:
    return lambda records: records[i].update(fields)


@pytest.mark.parametrize(
    ("alter", "says"),
    [
        (change(0, format="tacit-ledger-2"), "this version reads tacit-ledger-1 only"),
        (change(0, colour="red"), "not those of a header"),
        (change(0, kind="reserve"), "kind 'reserve' where one of header"),
        (change(0, budget={"epsilon": 1.0}), "line 1"),
        (
            change(0, budget={"epsilon": 1.0, "delta": 1e-5, "pure": 0.5, "mu_squared": 9.0}),
            "does not keep delta",
        ),
        (change(1, charge={"kind": "renyi", "alpha": 2}), "unknown kind of charge 'renyi'"),
        (change(1, charge={"kind": "gaussian", "mu_squared": -1.0}), "mu_squared = -1"),
        (change(1, cost={"mu_squared": 0.001, "epsilon": 0.0}), "does not cover the charge"),
        (change(1, cost={"mu_squared": 0.03, "epsilon": 0.0}), "does not fit"),
        (change(1, cost=[0.01]), "line 2"),
        (change(1, kind="refund"), "kind 'refund'"),
        (change(1, sequence=2), "missing, doubled or moved"),
        (change(2, node="c"), "'c' has no open reservation"),
        (change(3, node="a"), "'a' is charged a second time"),
        (change(3, extra=1), "not those of a reserve"),
        (lambda records: records.pop(2), "missing, doubled or moved"),
    ],
)
def test_what_makes_no_sense_is_refused_even_with_perfect_hashes(
    full: Path, alter: Callable, says: str
) -> None:
    forge(full, alter)
    with pytest.raises(LedgerDamaged, match=says):
        Ledger.open(full)
    assert not verify(full).sound


def test_a_perfect_forgery_or_an_older_copy_is_noticed_by_the_head_noted_elsewhere(
    full: Path, tmp_path: Path
) -> None:
    old = copy_to(full, tmp_path / "old")
    with Ledger.open(full) as ledger:
        ledger.spend(TENTH, "c")
        noted = ledger.head
    with Ledger.open(full, head=noted) as ledger:
        ledger.spend(TENTH, "d")  # later lines keep earlier heads valid
    assert verify(full, head=noted).sound
    assert verify(old).sound and not verify(old, head=noted).sound
    with pytest.raises(LedgerDamaged, match="that was noted"):
        Ledger.open(old, head=noted)
    forge(full, lambda records: records[1].update(time="earlier"))
    assert verify(full).sound and not verify(full, head=noted).sound


def test_an_old_head_file_is_refused(full: Path, tmp_path: Path) -> None:
    old = copy_to(full, tmp_path / "old")
    with Ledger.open(full) as ledger:
        ledger.spend(TENTH, "c")  # two lines
    shutil.copy(head_of(old), head_of(full))
    with pytest.raises(LedgerDamaged, match="head file is an old copy"):
        Ledger.open(full)
