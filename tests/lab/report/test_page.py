import dataclasses
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from lab.report import made_up
from tacit.errors import InvalidInput
from tacit.task.participation import Participation
from tacit_lab.report.page import _headlines, render, write_report
from tacit_lab.report.results import read_results


class Outline(HTMLParser):
    """Ids, links, texts, and whether elements are closed in order."""

    EMPTY = {"meta", "link", "input", "br"}

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        found = dict(attrs)
        self.ids += [found["id"]] if "id" in found else []
        self.links += [found[key] for key in ("href", "src") if key in found]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.EMPTY:
            self.open.pop()

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def page() -> str:
    return render(made_up.study())


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    return Outline(page)


def test_it_is_one_well_formed_file_that_asks_nobody_for_anything(page, outline) -> None:
    assert outline.open == [] and page.startswith("<!DOCTYPE html>")
    assert len(set(outline.ids)) == len(outline.ids)
    assert all(link.startswith(("#", "data:")) for link in outline.links)
    inside = {link[1:] for link in outline.links if link.startswith("#")}
    assert inside <= set(outline.ids)
    assert not re.findall(r"(?:https?:)?//[\w.-]+\.\w+", page) and "@import" not in page
    assert len(page) < 1_000_000


def test_learners_that_end_no_better_than_the_baseline_are_named() -> None:
    study = made_up.study()
    users = max(arm.users for arm in study.arms)
    learners = [arm for arm in study.arms if arm.users == users and not arm.result.reference]
    good = next(arm for arm in learners if not arm.result.warning)
    late = good.result.regret.copy()
    late[:, -1] = late[:, -2] + 2 * good.result.gap * np.diff(good.result.episodes)[-1]
    worse = dataclasses.replace(good, result=dataclasses.replace(good.result, regret=late))
    arms = tuple(worse if arm is good else arm for arm in study.arms)
    said = "By the last tenth of the users, not better than the uniform policy, or not shown to be"
    for one, named in ((study, False), (dataclasses.replace(study, arms=arms), True)):
        found = re.findall(rf"{said}, or not in every run: ([^<]*)", render(one))
        assert any(html.unescape(good.label) in html.unescape(line) for line in found) == named


def test_everything_a_reader_needs_is_there(outline) -> None:
    text = " ".join("".join(outline.text).split())
    for words in (
        "Regret as users come",
        "Final regret, K = 100,000",
        "Regret against ε, at K = 100,000",
        "Regret against K",
        "The price of privacy",
        "The smallest K that beats the uniform policy",
        "Who is better",
        "Users needed until regret is 50%",
        "EXTRAPOLATED",
        "What was guaranteed",
        "(2, 0)-differential privacy, local model",
        "a chosen bonus scale deviates from the theory",
        "ValueError: nothing & nowhere",
        "python 3.11",
        "root 0 to 7; run 0",
        "# <spec>",
        "Bands are simultaneous: with 95% confidence",
    ):
        assert words in text, words


def test_names_from_outside_cannot_become_markup(page: str) -> None:
    assert "<epsilon=4>" not in page and "&lt;epsilon=4&gt;" in page
    assert "# <spec>" not in page


def test_every_curve_can_be_hidden_and_read(page: str, outline) -> None:
    data = re.search(r'id="p0-curves-data">(.*?)</script>', page, re.DOTALL)[1]
    curves = json.loads(data)
    assert len(curves) == 11
    for number in range(len(curves)):
        for size in ("wide", "narrow"):
            assert f"p0-curves-{size}-linear-line-{number}" in outline.ids
    axes = json.loads(re.search(r'data-axes="([^"]*)"', page)[1].replace("&#34;", '"'))
    assert axes["left"] < axes["right"] and axes["top"] < axes["bottom"]


def test_phone_and_paper_have_rules_of_their_own(page: str) -> None:
    assert "@media (max-width: 640px)" in page and "@media print" in page
    assert 'name="viewport"' in page


def test_one_run_has_no_bands_and_claims_nothing(tmp_path: Path) -> None:
    made_up.write_run(tmp_path, made_up.arm("psrl", 1000, seeds=1))
    text = write_report(tmp_path).read_text()
    assert "no bands: one run has none" in text and "one run: no interval" in text
    assert "(nan" not in text and "inf" not in text.split("<main>")[1].split("<svg")[0]


def test_a_folder_of_runs_is_one_study(tmp_path: Path) -> None:
    for arm in made_up.study(2).arms[:4]:
        made_up.write_run(tmp_path / arm.label.replace(" ", "_"), arm)
    study = read_results(tmp_path)
    assert len(study.arms) == 4 and study.arms[0].pairs == ((0, 0), (0, 1))
    out = write_report(tmp_path, tmp_path / "deep" / "page.html")
    assert out.exists() and not list(tmp_path.rglob("*.part"))


def test_what_cannot_be_reported_on_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a folder"):
        write_report(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="holds no results"):
        write_report(tmp_path)
    with pytest.raises(InvalidInput, match="must end in .html"):
        write_report(tmp_path, tmp_path / "page.pdf")
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(InvalidInput, match="not valid JSON"):
        write_report(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(InvalidInput, match="does not describe results"):
        write_report(tmp_path)


def test_regret_of_zero_and_a_single_user_make_a_page_too(tmp_path: Path) -> None:
    made_up.write_run(tmp_path / "zero", made_up.arm("optimal", 1000, level=0.0))
    made_up.write_run(tmp_path / "one", made_up.arm("psrl", 1, seeds=3))
    text = write_report(tmp_path).read_text()
    assert "not within K = 1" in text or "not decided within K = 1" in text or "from K" in text
    assert "nan" not in text.split("<main>")[1].split('<section id="methods">')[0].lower()


def test_the_first_lines_say_what_their_numbers_are_about() -> None:
    """The least price of several is the least by luck as well, and learners win one by one."""
    found = " ".join(_headlines(made_up.study()))
    assert found.count(", the least of 2 learners.") == 4
    assert "beat the uniform policy within K = 100,000, each with 95% confidence." in found


def test_the_first_lines_say_that_epsilon_is_of_a_period() -> None:
    """Several periods cost more than one."""
    rule = Participation(None, "first", period=86_400.0)
    study = made_up.study()
    renewed = [
        dataclasses.replace(arm, result=dataclasses.replace(arm.result, guarantee=said))
        for arm in study.arms
        for said in [dataclasses.replace(arm.result.guarantee, rule=arm.private and rule or None)]
    ]
    found = " ".join(_headlines(dataclasses.replace(study, arms=tuple(renewed))))
    assert found.count(" per period of 1 day costs ") == 4
    assert "per period" not in " ".join(_headlines(study))
