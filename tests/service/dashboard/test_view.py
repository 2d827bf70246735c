"""The view and the page of a real collector, from the first look to the last."""

import json
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

from service.conftest import LOCAL
from service.devices import local_reports, trajectories
from tacit.planners.evaluation.by_release import Baseline, ValueBand
from tacit.policies.tabular import StochasticPolicy
from tacit.privacy.accounting import gaussian_epsilon
from tacit.privacy.sentences import meaning
from tacit.publication import Publication
from tacit_service.dashboard import page as pages
from tacit_service.dashboard.facts import FactReader, chosen
from tacit_service.dashboard.page import Window, content_security_policy, pace, render
from tacit_service.dashboard.view import MOST_POINTS, _verdict, action_map, build, letter, thinned
from tacit_service.planning.loop import PlannerLoop
from tacit_service.planning.publications import Version
from tacit_service.storage import identity

HOSTILE = """
[task]
name = "<script>alert(1)</script>"
states = ["<b>calm</b>", "tense & tired", "x"]
actions = ["\\"quoted\\"", "'single'"]
horizon = 3
reward_range = [-1.0, 3.0]
[agent]
name = "tacit-local"
epsilon = 4.0
[population]
users = {users}
tokens = "shared"
[updates]
minimum_batch = {batch}
{more}
"""


@pytest.fixture(autouse=True)
def one_root(monkeypatch) -> None:
    """Policies are drawn alike in every run: what is shown depends on them."""
    monkeypatch.setattr(identity, "secrets", SimpleNamespace(randbits=lambda bits: 7))


def serve(collector, make, count: int) -> None:
    rng = np.random.default_rng(collector.status().accepted)
    planner = collector.__dict__.setdefault("loop", PlannerLoop(collector))  # one all the time
    for _ in range(count):
        batch = collector.status().next_batch
        collector.upload(collector.deployment.task_id, make(collector, rng, batch), None)
        while planner.step():
            pass
    planner.step()


class Tags(HTMLParser):
    """Tags that are open at the end, and every attribute seen."""

    VOID = ("meta", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes) -> None:
        self.seen.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes) -> None:
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag


def seen(collector, version=None, window=None) -> tuple[dict, str]:
    facts = FactReader(collector).read(version)
    view = build(facts)
    return view.to_json(), render(view, facts, window or Window(version))


def test_before_the_first_user(deploy, opened) -> None:
    data, html = seen(opened(deploy()))
    assert data["progress"]["accepted"] == 0
    assert data["value"]["kind"] == "none"
    assert data["value"]["points"] == ()
    assert data["health"]["state"] == "trouble"  # nobody plans in this test
    assert data["forecast"]["users_per_day"] is None
    assert "Nobody has taken part yet" in html
    assert "Nothing can be said before the first release" in html
    assert Tags(html).open == []


def test_numbers_of_a_local_task(deploy, opened, clock) -> None:
    collector = opened(deploy(users=1000, batch=100))
    serve(collector, local_reports, 1)
    clock.now += 3600.0
    serve(collector, local_reports, 2)
    data, html = seen(collector)
    assert data["progress"]["accepted"] == data["progress"]["in_newest_policy"] == 300
    assert [v["version"] for v in data["versions"]] == [0, 1, 2, 3]
    assert data["versions"][1]["published"] == "1970-01-12T13:46:40Z"
    assert data["forecast"]["users_per_day"] == pytest.approx(300 * 24)
    assert data["forecast"]["policies_left"] == 7
    assert data["health"]["state"] == "good"
    assert data["health"]["ledger_intact"] is True
    assert data["health"]["schema"]
    assert [p["version"] for p in data["value"]["points"]] == [1, 2, 3]
    assert all(p["low"] <= p["middle"] <= p["high"] for p in data["value"]["points"])
    assert data["policy"]["version"] == 3
    assert data["guarantee"]["digest"] == collector.deployment.guarantee.digest()
    assert json.loads(json.dumps(data)) is not None
    assert ">300</p>" in html and "published" in html
    assert Tags(html).open == []


def test_numbers_of_a_joint_task(deploy, opened, joint_text) -> None:
    collector = opened(deploy(joint_text, users=200, batch=40))
    before, _ = seen(collector)
    assert before["budget"]["spent_epsilon"] == 0.0
    assert before["budget"]["left_epsilon"] == before["budget"]["epsilon"]
    serve(collector, trajectories, 2)
    data, html = seen(collector)
    assert data["task"]["model"] == "joint"
    assert data["budget"]["spent_epsilon"] == data["budget"]["epsilon"]
    assert data["budget"]["share"] == pytest.approx(2 / 5)
    assert "2 releases made, 3 to come" in html
    said = data["guarantee"]["meaning"]
    assert said == meaning(collector.deployment.guarantee) and html.count(said) == 1
    assert "sees everything published and all that other users get to see" in said


@pytest.mark.parametrize("delta", ["", "delta = 1e-5"])
def test_the_cost_of_one_of_several_reports_is_never_understated(deploy, opened, delta) -> None:
    """Gaussian noise adds up by squares: one of four reports costs more than a quarter."""
    kind = "gaussian" if delta else "laplace"
    text = LOCAL.replace('"tacit-local"', f'"ldp-obi"\nrandomizer = "{kind}"\n{delta}')
    text = text.replace('tokens = "shared"', 'participations = 4\nteaches = "every"')
    collector = opened(deploy(text))
    stated, shown = collector.deployment.guarantee, seen(collector)[0]["budget"]
    if delta:
        assert shown["spent_epsilon"] == gaussian_epsilon(stated.mu / 2, stated.delta)
        assert shown["left_epsilon"] == gaussian_epsilon(stated.mu * 0.75**0.5, stated.delta)
        assert shown["spent_epsilon"] > stated.epsilon / 4
    else:
        assert shown["spent_epsilon"] == stated.epsilon / 4
        assert shown["left_epsilon"] == stated.epsilon * 3 / 4


def test_the_end_is_told(deploy, opened) -> None:
    collector = opened(deploy(users=200, batch=100))
    serve(collector, local_reports, 2)
    data, html = seen(collector)
    assert data["forecast"] == {
        "users_left": 0,
        "policies_left": 0,
        "users_per_day": None,
        "pace_since": None,
        "next_policy_at": None,
        "finished_at": None,
    }
    assert "The population is reached" in html
    assert data["progress"]["next_policy_in"] is None


def test_labels_cannot_become_markup(deploy, opened) -> None:
    collector = opened(deploy(HOSTILE, users=200, batch=100))
    serve(collector, local_reports, 1)
    data, html = seen(collector)
    assert "<script>alert" not in html and "<b>calm" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "tense &amp; tired" in html
    page = Tags(html)
    assert page.open == []
    assert sum(tag == "script" for tag, _ in page.seen) == 1
    assert data["value"]["span"] == (-3.0, 9.0)  # three steps of rewards in [-1, 3]


def test_the_page_asks_nobody_else_for_anything(deploy, opened) -> None:
    collector = opened(deploy(users=300, batch=100))
    serve(collector, local_reports, 2)
    _, html = seen(collector)
    addresses = [a.get("src") or a.get("href") for _, a in Tags(html).seen]
    addresses = [address for address in addresses if address]
    assert {a for a in addresses if not a.startswith(("#", "data:"))} == {
        "v1/guarantee",
        "v1/dashboard",
    }
    assert "@import" not in html and "url(" not in html
    assert not [a for _, a in Tags(html).seen if any(k == "style" or k[:2] == "on" for k in a)]


def test_the_policy_of_the_browser_allows_exactly_this_page() -> None:
    policy = content_security_policy()
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "http" not in policy


def test_other_versions_can_be_looked_at(deploy, opened) -> None:
    collector = opened(deploy(users=400, batch=100))
    serve(collector, local_reports, 2)
    old, html = seen(collector, 1)
    assert old["policy"]["version"] == 1
    assert '<option value="1" selected>' in html
    absent, html = seen(collector, 77)
    assert absent["policy"]["version"] == 2
    assert "There is no version 77; version 2 is shown." in html


def test_the_stamp_changes_with_what_is_said_and_not_with_time(deploy, opened, clock) -> None:
    collector = opened(deploy(users=400, batch=100))
    planner = PlannerLoop(collector)
    planner.step()
    first, _ = seen(collector)
    clock.now += 3.0  # for so long the planner may be silent
    later, _ = seen(collector)
    assert first["stamp"] == later["stamp"]
    assert first["generated"] != later["generated"]
    collector.upload(
        collector.deployment.task_id, local_reports(collector, np.random.default_rng(0), 1), None
    )
    assert seen(collector)[0]["stamp"] != first["stamp"]


def test_large_maps_come_in_parts_and_as_a_whole(deploy, opened) -> None:
    text = HOSTILE.replace("horizon = 3", "horizon = 50").replace(
        'states = ["<b>calm</b>", "tense & tired", "x"]', "states = 70"
    )
    collector = opened(deploy(text, users=200, batch=100))
    _, html = seen(collector, window=Window(None, 65, 49))
    assert '<option value="60" selected>60 to 69</option>' in html
    assert '<option value="48" selected>49 to 50</option>' in html
    assert 'class="overview" viewBox="0 0 50 70"' in html
    table = html[html.index('id="map-table"') : html.index("</table>", html.index("map-table"))]
    assert table.count("<td") == 10 * 2
    far = seen(collector, window=Window(None, 10**9, 10**9))[1]
    assert '<option value="60" selected>' in far


def test_random_policies_show_the_most_likely_action(deploy) -> None:
    deployment = deploy()
    chances = np.full((4, 3, 2), 0.5)
    chances[0, 0] = [0.2, 0.8]
    shown = action_map(deployment, Publication(3, StochasticPolicy(chances)), None)
    assert shown.table[0][0] == 1
    assert shown.certainty[0][0] == 0.8
    assert shown.actions == ("action 0", "action 1")


def test_marks_of_actions() -> None:
    assert [letter(a) for a in (0, 25, 26, 53)] == ["A", "Z", "A1", "B2"]


def test_few_versions_are_estimated_and_drawn_however_many_there_are() -> None:
    assert chosen(0) == []
    assert chosen(1) == [0]
    assert chosen(4) == [3, 2, 1]
    many = chosen(10_000)
    assert many[0] == 9_999 and len(many) < 80
    assert set(chosen(9_000)[1:]) <= set(chosen(10_000))  # so that they are worked out once
    versions = [Version(v, v, float(v)) for v in range(10_000)]
    kept = thinned(versions)
    assert len(kept) == MOST_POINTS
    assert kept[0] == versions[0] and kept[-1] == versions[-1]


def test_many_watchers_cost_little_more_than_one(deploy, opened, monkeypatch) -> None:
    """Estimates and maps are made once; only the cheap numbers of now are read again."""
    collector = opened(deploy())
    asked = []
    board, published = collector.publications, collector.publications.published
    monkeypatch.setattr(board, "published", lambda v: asked.append(v) or published(v))
    reader = FactReader(collector)
    reader.read(None)
    once = len(asked)
    for _ in range(20):
        reader.read(None)
    assert once >= 1 and len(asked) == once


def test_paces_are_said_in_a_fitting_unit() -> None:
    assert pace(10.0) == "10.0 reports a day"
    assert pace(24_000.0) == "1,000 reports an hour"
    assert pace(864_000.0) == "10.0 reports a second"


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_text_has_enough_contrast_in_both_themes(theme: int) -> None:
    """WCAG AA asks for 4.5 between text and ground."""
    style = pages._asset("style.css")
    root = re.findall(r":root \{(.*?)\}", style, re.DOTALL)[theme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", root))
    pairs = [(ink, ground) for ink in ("ink", "soft", "accent") for ground in ("ground", "card")]
    pairs += [("good", "good-ground"), ("wait", "wait-ground"), ("bad", "bad-ground")]
    pairs += [("ink", f"a{k}") for k in range(8)]
    low = [pair for pair in pairs if contrast(colours[pair[0]], colours[pair[1]]) < 4.5]
    assert low == []


def test_baselines_stand_beside_the_estimate_with_a_sentence_each(deploy, opened) -> None:
    collector = opened(deploy(HOSTILE, users=4000, batch=1000))  # noise hides no step
    serve(collector, local_reports, 2)
    data, html = seen(collector)
    names = [row["name"] for row in data["value"]["baselines"]]
    assert names == ["'\"quoted\"' always", "an action at random", "the first policy"]
    for row in data["value"]["baselines"]:
        assert row["low"] <= row["middle"] <= row["high"]
    value = data["value"]["points"][-1]["middle"]
    gaps = [row["value"] + row["middle"] - value for row in data["value"]["baselines"]]
    assert gaps == pytest.approx([0.0] * 3, abs=1e-6)
    said = data["value"]["verdict"]  # noise decides what: worse, better or not told apart
    assert all(sum(name in one for one in said) == 1 for name in names)
    assert html.count('class="small verdict"') == len(data["value"]["verdict"])
    assert Tags(html).open == []


def test_a_verdict_never_says_more_than_the_band() -> None:
    def said(gain, hidden=0.0) -> str:
        one = Baseline("it", (0.0, 1.0, 2.0), gain)
        return " ".join(_verdict(ValueBand("start", hidden=hidden, baselines=(one,)), 100, 300))

    assert said((0.1, 1.0, 2.0)).startswith("Better than it")
    assert said((-2.0, -1.0, -0.1)).startswith("Worse than it")
    assert "after about 400 reports, more than this task is for" in said((-1.0, 1.0, 3.0))
    assert "no number of reports" in said((-1.0, 0.0, 1.0))
    assert "do not support" in said((0.1, 1.0, 2.0), hidden=0.6)
    some = said((0.1, 1.0, 2.0), hidden=0.4)
    assert some.startswith("Noise hides 40% of the policy's steps: about those the estimate")
    assert some.endswith("the band of the gain lies above 0.")


@pytest.mark.parametrize(
    ("kind", "name"),
    [("start", "Estimated value"), ("even", "Estimated value, all starts alike")],
)
def test_a_value_over_even_starts_is_not_called_that_of_the_users(
    deploy, opened, monkeypatch, kind, name
) -> None:
    """Releases that do not say where people start give a number that is not what users get."""
    known = ValueBand(kind, 1.0, 2.0, 3.0)
    monkeypatch.setattr("tacit_service.dashboard.facts.value_band", lambda *_: known)
    collector = opened(deploy())
    serve(collector, local_reports, 2)
    _, html = seen(collector)
    assert f"<h2>{name}</h2>" in html and f"<h2>{name} of the published policy</h2>" in html


def test_where_noise_hides_the_policy_no_number_is_shown(deploy, opened) -> None:
    collector = opened(deploy(HOSTILE.replace("epsilon = 4.0", "epsilon = 0.05"), users=1000))
    serve(collector, local_reports, 2)
    data, html = seen(collector)
    shown = data["value"]
    assert shown["supported"] is False and shown["kind"] == "start"
    assert shown["points"] == shown["states"] == shown["baselines"] == ()
    assert len(shown["verdict"]) == 1 and "do not support an estimate yet" in shown["verdict"][0]
    assert '<p class="big none" id="value">not yet</p>' in html and "band of the gain" not in html
    assert html.count("do not support an estimate yet") == 2, "on the card, and where it would be"
    assert Tags(html).open == []


def test_the_band_says_how_sure_it_is(deploy, opened) -> None:
    collector = opened(deploy(users=1000, batch=500))
    serve(collector, local_reports, 2)
    data, html = seen(collector)
    assert data["value"]["supported"] is True
    assert '<p class="small">90% band ' in html and ">90% band of the gain</th>" in html


def test_the_forecast_says_what_its_pace_is_over(deploy, opened, clock) -> None:
    collector = opened(deploy(users=1000, batch=100))
    collector.__dict__["loop"] = PlannerLoop(collector)
    collector.__dict__["loop"].step()
    clock.now += 86_400.0 * 2
    serve(collector, local_reports, 2)
    clock.now += 86_400.0
    data, html = seen(collector)
    assert "The pace is the average since version 0 was published, <time" in html
    assert ">3 days ago</time>. How many" in html and "66.7 reports a day" in html
    clock.now += 30 * 86_400.0
    data, html = seen(collector)
    assert "<dd>nobody reports</dd>" in html and "since version 2 was published" in html
    assert (
        "<dd>not at this pace</dd>" in html and "<dd>not within a century at this pace</dd>" in html
    )
    assert data["forecast"]["users_per_day"] == 0.0 and "week" not in html


def test_what_a_planner_hopes_for_is_not_called_an_estimate(deploy, opened, joint_text) -> None:
    text = joint_text.replace('"tacit-joint"', '"private-linopt-vi"')
    text = text.replace("first = 40\ngrowth = 1.5", "every = 40")
    collector = opened(deploy(text, users=200, batch=40))
    serve(collector, trajectories, 2)
    data, html = seen(collector)
    assert data["value"]["kind"] == "optimistic" and data["value"]["band"] is None
    assert html.count("<h2>Value hoped for</h2>") == 2 and "Estimated value</h2>" not in html
    assert "as the planner hopes; no band" in html
