"""Per participation against per person: a tiny sweep whose people come back, and its page."""

import dataclasses
import json
import math
import re
from html import unescape
from pathlib import Path

import pytest

from tacit.privacy.guarantee import Guarantee
from tacit_lab.report.analysis import paid, per_person
from tacit_lab.report.page import render
from tacit_lab.report.results import ResultSet, read_results
from tacit_lab.sweep import load
from tacit_lab.sweep.pool import Done
from tacit_lab.sweep.run import run
from tacit_lab.sweep.spec import parse
from tacit_lab.sweep.task import run_task

SPEC = """
episodes = 60
seeds = 2
epsilon = 2
problems = "random-mdp"
agents = ["tacit-local", "tacit-joint"]
participations = [1, 5]
teaches = ["first", "every"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Swept in this process."""
    target = tmp_path_factory.mktemp("sweep") / "back"
    spec = parse(SPEC, Path("study.toml"))
    run(spec, target, lambda tasks: (Done(t, run_task(t.payload()), 1) for t in tasks))
    return target


@pytest.fixture(scope="module")
def study(folder: Path) -> ResultSet:
    return read_results(folder)


def test_the_tables_say_who_came_and_when(folder: Path) -> None:
    sweep = load(folder)
    assert len(sweep.configurations) == 6
    assert {"participations", "teaches"} <= set(sweep.manifest["settings"])
    assert "day" in sweep.curves
    back = sweep.curves["participations"].notna()
    assert (back == sweep.curves["day"].notna()).all() and back.any() and not back.all()
    described = sweep.configurations[-1]
    assert described["given"]["coming"] == {"participations": 5, "teaches": "every"}
    assert described["returning"]["people"] == 12
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["configurations"][0]["returning"] is None


def test_labels_of_curves_say_that_epsilon_is_of_a_period(study: ResultSet) -> None:
    arm = next(arm for arm in study.arms if arm.rule is not None)
    said, rule = arm.result.guarantee, dataclasses.replace(arm.rule, period=86400.0)
    daily = dataclasses.replace(arm.result, guarantee=dataclasses.replace(said, rule=rule))
    label = dataclasses.replace(arm, result=daily).label
    assert label.endswith("ε = 2 per period of 1 day") and " per " not in arm.label


def test_rows_of_one_problem(study: ResultSet) -> None:
    rows = {row.arm.label: row for row in per_person(study.arms)}
    assert len(rows) == 6
    once = rows["tacit-local, ε = 2"]
    assert once.people == 60 and once.times == 5 and once.paid == pytest.approx(10.0)
    assert once.each.value == pytest.approx(once.person.value)
    first = rows["tacit-local; first of 5, 12 people, rounds, ε = 2"]
    assert first.people == 12 and first.paid == pytest.approx(2.0)
    assert first.person.value == pytest.approx(5 * first.each.value)
    group = rows["tacit-joint, ε = 2"]
    assert group.paid is not None and group.paid > 10.0  # one counter: mu times 5, not its root
    assert per_person([row.arm for row in rows.values() if row.arm.rule is None]) == []


def test_what_is_not_known_is_not_stated() -> None:
    assert paid(Guarantee("none", math.inf, 0.0, "none", "none"), 3) is None
    assert paid(Guarantee("shuffle", 1.0, 1e-6, "shuffled", "exact"), 3) is None
    assert paid(Guarantee("local", 1.0, 0.0, "response", "exact"), 3) == pytest.approx(3.0)


def test_the_page_has_the_section_and_its_picture(study: ResultSet) -> None:
    page = unescape(re.sub(r"<[^>]*>", "", render(study)))
    assert "Per participation against per person, K = 60" in page
    assert "10 for 5 times" in page and "2 for 5 times" in page
    assert 'id="p0-days"' in render(study) and "p0-days-wide-line-0" in render(study)
    alone = [arm for arm in study.arms if arm.rule is None]
    without = ResultSet("x", tuple(alone), (), (), ("0",))
    assert "against per person" not in render(without)
