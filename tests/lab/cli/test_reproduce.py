import json
import re
from pathlib import Path

import pytest

from tacit_lab.figures.reproduction import figures

WORDS = ("reproduce", "tabular-ldp/figure-9", "--size", "quick")


def test_json_is_one_object_and_nothing_else(call, tmp_path: Path) -> None:
    done = call(*WORDS, "--json", "--workers", "1")
    assert done.status == 0 and done.err == "" and done.out.count("\n") == 1
    report = json.loads(done.out)
    assert report["figure"] == "tabular-ldp/figure-9"
    assert {"claim", "expected", "measured", "holds"} <= set(report["claims"][0])
    assert all((tmp_path / file).exists() for file in report["files"])
    assert Path(report["files"][0]).parts[0] == "tacit-figures"


def test_claims_that_fail_are_said_clearly_and_the_status_is_0(call) -> None:
    done = call(*WORDS, "--out", "here")
    assert done.status == 0
    words = " ".join(re.sub(r"[│┃]", " ", done.out).split())
    for text in ("DOES NOT", "HOLD", "claims hold", "wrote here/tabular-ldp/figure-9/quick/"):
        assert text in words


def test_figures_are_listed(call) -> None:
    shown = call("list", "figures").out
    assert "tabular-ldp/figure-1" in shown and "quick: " in shown and "full: " in shown
    rows = json.loads(call("list", "figures", "--json").out)["figures"]
    assert [row["name"] for row in rows] == [figure.id for figure in figures]
    assert set(rows[0]) == {"name", "summary", "paper", "quick", "full", "paper_size"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("reproduce figure-7", "unknown figure 'figure-7'; did you mean 'tabular-ldp/figure-7'?"),
        ("reproduce", "Missing argument 'WHAT'"),
        ("reproduce tabular-ldp/figure-9 --workers x", "--workers = 'x', but it must be a whole"),
        ("reproduce tabular-ldp/figure-9 --out /proc/x", "cannot make the folder /proc/x"),
        ("reproduce coch", "unknown figure 'coch'; did you mean 'coach'?"),
        ("reproduce tabular-ldp/figure-9 -O a=1", "has no option -O a; known: bounds"),
        ("reproduce tabular-ldp/figure-9 -O bounds=1", "-O bounds"),
        ("reproduce tabular-ldp/figure-9 --size huge", "unknown size 'huge'; known: full, paper"),
        ("reproduce coach -O peple=3", "coach has no option -O peple; did you mean 'people'?"),
        ("reproduce coach -O people=0", "-O people = 0, but"),
        ("reproduce coach -O runs=1,2", "-O runs = '1,2', but it must be one whole number"),
        ("reproduce coach --size quick", "coach takes no --size and no --workers"),
        ("reproduce bench -O peer_python=/nowhere", "-O peer_python=/nowhere: there is no such"),
        ("list figure", "unknown list 'figure'; did you mean 'figures'?"),
    ],
)
def test_mistakes_get_one_line_and_status_2(call, words: str, message: str) -> None:
    done = call(*words.split())
    assert done.status == 2 and message in done.err and done.err.count("\n") == 1


def test_help_has_an_example(call) -> None:
    assert "Example: tacit reproduce" in call("reproduce", "--help").out
