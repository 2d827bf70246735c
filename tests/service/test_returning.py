"""People who come back: persons are tokens, and are counted by the rule."""

import base64
import dataclasses
import json

import numpy as np
import pytest
import sqlalchemy as sa

from service.conftest import LOCAL
from service.devices import trajectories
from service.returning import (
    FIRST,
    LIFETIME,
    Reference,
    come,
    crowd,
    report_of,
    send,
    stepping,
    sums,
    write,
)
from tacit.errors import InvalidInput
from tacit.privacy import sentences
from tacit.task.participation import Participation
from tacit.wire import documents, messages
from tacit_service.collector import ANOTHER_PERIOD, Collector
from tacit_service.config.deployment import Deployment
from tacit_service.dashboard.facts import FactReader
from tacit_service.dashboard.page import Window, render
from tacit_service.dashboard.view import build
from tacit_service.http.uploads import ANSWER
from tacit_service.modes.memory import KEY, PREFIX
from tacit_service.modes.periods import Periods
from tacit_service.planning.loop import LEASE_SECONDS, PlannerLoop
from tacit_service.planning.publications import Billboard
from tacit_service.planning.step import Planning
from tacit_service.responses import Refused
from tacit_service.storage import schema
from tacit_service.storage.vault import Vault

DAY = 86400.0


def names(collector: Collector, prefix: str = PREFIX) -> list[str]:
    with collector._store.read() as connection:
        return Vault.names(connection, prefix)


def begun(collector: Collector) -> list[tuple[int, int]]:
    with collector._store.read() as connection:
        return [tuple(one) for one in Periods.begun(connection)]


def restarted(collector: Collector, opened) -> tuple[Collector, PlannerLoop]:
    """The same after its process ended, with a planner that may plan."""
    collector.close()
    again = opened(collector.deployment)
    planner = PlannerLoop(again)
    planner.step()
    again.clock.now += LEASE_SECONDS
    return again, planner


# The file.


@pytest.mark.parametrize(
    ("text", "rule", "said"),
    [
        (FIRST, 'tokens = "shared"', "with one shared token nobody counts how often"),
        (LIFETIME, 'tokens = "shared"\nrenews = "30d"', "leave participations, teaches, apart"),
        (FIRST, 'attendance = "private"', "a service cannot hide who stays away"),
        (FIRST, 'teaches = "every"\nrenews = "30d"', "renews in .* goes with teaches first or"),
        (LIFETIME, 'teaches = "every"', "participations may not be any number where every one"),
        (FIRST, 'teaches = "lifetime"', "nothing here bounds what one person teaches"),
        (LIFETIME, 'teaches = "first"\nrenews = "30d"', "a curator renews budgets only where"),
        (FIRST, 'apart = "40d"\nrenews = "30d"', "nobody could take part twice"),
        (FIRST, 'renews = "soon"', "renews in .population. = 'soon'.*seconds"),
        (FIRST, 'teaches = "some"', "teaches in .population. = 'some'.*first, lifetime, every"),
        (LIFETIME.replace('"any"', '"often"'), "", "participations in .population. = 'often'"),
    ],
)
def test_nonsense_is_told_in_a_sentence(tmp_path, text, rule, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        write(text, tmp_path, rule=rule)


def test_the_agent_decides_what_the_file_leaves_open(tmp_path) -> None:
    local, joint = write(FIRST, tmp_path), write(LIFETIME, tmp_path, rule='renews = "30d"')
    assert local.task.rule == Participation(30, "first")
    assert joint.task.rule == Participation(None, "lifetime", period=30 * DAY)
    assert (local.most_reports, local.ids) == (1, "token")
    assert write(FIRST, tmp_path, agent="ldp-obi").ids == "token"
    split = write(FIRST, tmp_path, rule='teaches = "every"')
    assert split.task.rule is None and split.most_reports == split.task.participations == 30
    assert documents.task_from_json(joint.terms["task"]) == joint.task


def test_people_are_told_the_rule(tmp_path, opened) -> None:
    local = write(FIRST, tmp_path, rule='renews = "30d"\napart = "20h"')
    told = sentences.consent(local.guarantee, name="x", steps=4, kept=False)
    told = " ".join(told.split())
    assert "up to 30 times in every period of 30 days, at least 20 hours apart" in told
    assert "Only the first time of a period is reported" in told
    assert "the first time of a period is reported, and at the others no report" in local.returning
    assert "all their participations of a period" in local.guarantee.statement()
    joint = write(LIFETIME, tmp_path, rule='renews = "30d"')
    told = " ".join(sentences.consent(joint.guarantee, name="x", steps=4, kept=False).split())
    assert "You can take part any number of times in every period of 30 days." in told
    assert "we remember, encrypted, what you have taught" in told
    assert "what they teach in all of them of a period together is bounded" in joint.returning
    collector = opened(joint)
    facts = FactReader(collector).read(None)
    page = " ".join(render(build(facts), facts, Window()).split())
    for words in (
        "Privacy per user and period of 30 days",
        "joint model, all of one period taken together",
        "Budget per user and period of 30 days",
        "everything one person sends in one period of 30 days",
        "that somebody took part, and when, is not protected",
    ):
        assert words in page
    described = collector.describe()
    assert described["task"]["rule"]["teaches"] == "lifetime"
    assert described["guarantee"]["rule"]["period"] == 30 * DAY
    assert described["guarantee"]["participations"] is None


def test_a_task_that_counted_every_time_goes_on_so(tmp_path, opened) -> None:
    """Before there were rules, ``participations = m`` split epsilon, and the file says no more."""
    before = write(FIRST, tmp_path, rule='teaches = "every"')
    collector = opened(before)
    with collector._store.write() as connection:
        row = schema.meta.c.name == "terms"
        stored = json.loads(connection.execute(sa.select(schema.meta.c.value).where(row)).scalar())
        for key in ("teaches", "apart", "renews", "attendance"):  # which nobody knew
            del stored[f"{key} in [population]"]
        value = json.dumps(stored)
        connection.execute(schema.meta.update().where(row).values(value=value))
    collector.close()
    now = write(FIRST, tmp_path)
    assert now.task.rule is not None and now.task_id != before.task_id
    again = opened(now)
    assert again.deployment.task_id == before.task_id and again.deployment.task.rule is None
    assert again.deployment.guarantee.to_json() == before.guarantee.to_json()
    (anna,), rng = crowd(again, 1), np.random.default_rng(1)
    for k in range(30):
        assert send(again, [report_of(again, rng, anna, k)], anna) == ["accepted"]
    again.close()
    with pytest.raises(Refused, match="belongs to another task"):
        opened(write(FIRST, tmp_path, rule='renews = "30d"'))
    assert opened(before).status().accepted == 30  # also where the file says it now


# The local model: one report in a period.


def test_one_report_in_a_period(tmp_path, opened, clock) -> None:
    collector = opened(write(FIRST, tmp_path, rule='renews = "10d"'))
    (anna, ben), rng = crowd(collector, 2), np.random.default_rng(1)
    clock.now = 105 * DAY
    assert send(collector, [report_of(collector, rng, anna, 10)], ben) == ["invalid"]
    assert send(collector, [report_of(collector, rng, anna, 10)], anna) == ["accepted"]
    assert send(collector, [report_of(collector, rng, anna, 10)], anna) == ["duplicate"]
    for other in (8, 11, 12, 0):
        report = report_of(collector, rng, ben, other)
        (outcome,) = collector.upload(collector.deployment.task_id, [report], ben).outcomes
        assert (outcome.outcome, outcome.detail) == ("invalid", ANOTHER_PERIOD)
    clock.now = 110 * DAY - 1800  # a clock that is half an hour ahead
    assert send(collector, [report_of(collector, rng, ben, 11)], ben) == ["accepted"]
    clock.now = 112 * DAY
    assert send(collector, [report_of(collector, rng, anna, 11)], anna) == ["accepted"]
    assert send(collector, [report_of(collector, rng, ben, 10)], ben) == ["accepted"]  # begun then
    assert collector.status().accepted == 4


def test_a_report_is_taken_as_long_as_its_episode_allows(tmp_path, opened, clock) -> None:
    timed = FIRST.replace("horizon = 4", 'horizon = 4\nduration = "2d"').replace(
        "accepted_versions = 1000", 'delay = "1h"\ngrace = "2d"'
    )
    clock.now = 99 * DAY
    collector = opened(write(timed, tmp_path, rule='renews = "10d"'))
    (anna, ben, cleo), rng = crowd(collector, 3), np.random.default_rng(1)
    clock.now = 104 * DAY
    assert send(collector, [report_of(collector, rng, anna, 9)], anna) == ["accepted"]
    clock.now = 104 * DAY + 3 * 3600.0
    assert send(collector, [report_of(collector, rng, ben, 9)], ben) == ["invalid"]
    collector.turn("paused")
    clock.now += 20 * DAY
    collector.turn("open")
    assert send(collector, [report_of(collector, rng, cleo, 10)], cleo) == ["accepted"]


def test_without_a_period_the_first_is_the_only_one(tmp_path, opened, clock) -> None:
    collector = opened(write(FIRST, tmp_path))
    (anna,), rng = crowd(collector, 1), np.random.default_rng(1)
    assert send(collector, [report_of(collector, rng, anna, 0)], anna) == ["accepted"]
    clock.now += 1000 * DAY
    assert send(collector, [report_of(collector, rng, anna, 0)], anna) == ["duplicate"]
    assert send(collector, [report_of(collector, rng, anna, 1)], anna) == ["invalid"]


def test_a_curator_takes_one_report_of_a_person_where_the_first_teaches(tmp_path, opened) -> None:
    collector = opened(write(LIFETIME, tmp_path, rule='teaches = "first"'))
    (anna,), rng = crowd(collector, 1), np.random.default_rng(1)
    come(collector, rng, anna)
    assert send(collector, trajectories(collector, rng, 1), anna) == ["refused"]


def test_decoys_touch_nothing_and_are_answered_in_the_same_length(tmp_path, opened, clock) -> None:
    collector = opened(write(FIRST, tmp_path, rule='renews = "10d"'))
    (anna,), rng = crowd(collector, 1), np.random.default_rng(1)
    clock.now = 105 * DAY
    report = report_of(collector, rng, anna, 10)
    decoy = dataclasses.replace(report, id="ab" * 16, rules=messages.DECOY)
    task_id = collector.deployment.task_id
    with collector._store.read() as connection:
        before = [connection.execute(sa.select(t)).all() for t in schema.metadata.sorted_tables]
    answers = [collector.upload(task_id, [decoy], anna) for _ in range(2)]
    with collector._store.read() as connection:
        after = [connection.execute(sa.select(t)).all() for t in schema.metadata.sorted_tables]
    assert before == after
    assert [answer.outcomes[0].outcome for answer in answers] == ["decoy"] * 2
    both = collector.upload(task_id, [decoy, report], anna)
    assert [outcome.outcome for outcome in both.outcomes] == ["decoy", "accepted"]
    alone = collector.upload(task_id, [report_of(collector, rng, *crowd(collector, 1), 10)], anna)
    assert alone.outcomes[0].outcome == "invalid"
    (ben,) = crowd(collector, 1)
    accepted = collector.upload(task_id, [report_of(collector, rng, ben, 10)], ben)
    assert accepted.outcomes[0].outcome == "accepted"
    assert len(ANSWER.dump_json(accepted)) == len(ANSWER.dump_json(answers[0]))


def test_elsewhere_a_decoy_is_a_report_by_other_rules(tmp_path, opened) -> None:
    collector = opened(write(LIFETIME, tmp_path))
    (anna,), rng = crowd(collector, 1), np.random.default_rng(1)
    decoy = dataclasses.replace(trajectories(collector, rng, 1)[0], rules=messages.DECOY)
    assert send(collector, [decoy], anna) == ["invalid"]


# The joint model: lives.


def test_lives_are_folded_with_their_memory(tmp_path, opened) -> None:
    """Whatever comes together in an upload, and across a restart and a rotated key."""
    deployment = write(LIFETIME, tmp_path, keep="true")
    collector = opened(deployment)
    planner, rng = PlannerLoop(collector), np.random.default_rng(1)
    seven, reference = crowd(collector, 7), Reference(collector)
    for k in range(45):
        who = int(rng.integers(7))
        for report in come(collector, rng, seven[who], 1 + k % 3):
            reference.add(report, who)
        planner.step()
        if k == 25:
            key = deployment.key_file
            key.write_text(f"{base64.b64encode(bytes([9] * 32)).decode()}\n{key.read_text()}")
            collector, planner = restarted(collector, opened)
            reference.collector = collector
    assert np.array_equal(sums(collector), reference.total)
    assert collector.status().version > 3 and collector.verify().sound
    assert len(names(collector)) == 7 + 1  # and the key of their pseudonyms


def test_one_person_alone_cannot_teach_more_than_a_life(tmp_path, opened) -> None:
    collector = opened(write(LIFETIME, tmp_path, keep="true", users=100))
    (anna,), rng = crowd(collector, 1), np.random.default_rng(2)
    come(collector, rng, anna, 60)
    statistic = collector.deployment.bound.statistic
    totals = statistic.layout.views(sums(collector) * statistic.layout.units)["totals"]
    assert totals.max() == 0.5 and 0 < totals.sum() <= 0.5 * statistic.steps


def test_a_period_belongs_to_whole_batches(tmp_path, opened, clock) -> None:
    deployment = write(LIFETIME, tmp_path, rule='renews = "10d"', keep="true", users=300)
    collector = opened(deployment)
    planner, rng = PlannerLoop(collector), np.random.default_rng(3)
    (anna, ben), reference = crowd(collector, 2), Reference(collector)

    def both(times: int) -> None:
        for who, person in enumerate((anna, ben)):
            for report in come(collector, rng, person, times):
                reference.add(report, who)

    clock.now = 105 * DAY
    edge = deployment.bound.schedule.times[1]
    both(edge // 2 - 3)
    clock.now = 111 * DAY
    both(2)  # of the batch that is open: in the period in which it began
    assert begun(collector) == [(0, 10)]
    old = set(names(collector))
    reports = come_over(collector, rng, anna, edge - collector.status().accepted, 6, reference)
    assert begun(collector) == [(0, 10), (edge, 11)]  # reports that came together were parted
    assert len(reports) == 8 and old & set(names(collector)) == {KEY}
    both(deployment.bound.schedule.times[2])
    assert np.array_equal(sums(collector), reference.total)
    assert stepping(planner.step) > 2 and collector.verify().sound
    assert "2 periods have begun" in collector.ledger()["charged"]


def come_over(collector, rng, person, before: int, after: int, reference):
    """One upload over the edge of two periods."""
    reports = trajectories(collector, rng, before + after)
    assert send(collector, reports, person) == ["accepted"] * len(reports)
    for k, report in enumerate(reports):
        if k == before:
            reference.renew()
        reference.add(report, 0)
    return reports


class Crash(BaseException):
    """A process that ends here."""


@pytest.mark.parametrize("point", ["ready", "commit", "put"])
def test_the_counter_begins_again_once_whatever_crashes(
    tmp_path, opened, clock, monkeypatch, point
) -> None:
    """The faded sum is forgotten with the first batch of a new period, before and after a crash."""
    deployment = write(LIFETIME, tmp_path, rule='renews = "10d"', keep="true", users=200)
    collector = opened(deployment)
    planner, rng = PlannerLoop(collector), np.random.default_rng(4)
    (anna,) = crowd(collector, 1)
    clock.now = 105 * DAY
    first, second = deployment.bound.schedule.times[1:3]
    come(collector, rng, anna, first)
    stepping(planner.step)
    clock.now = 120 * DAY
    come(collector, rng, anna, second - first)

    def crash(*args, **kwargs):
        raise Crash

    where = {
        "ready": (type(collector._mode), "ready"),
        "commit": (Planning, "_commit"),
        "put": (Billboard, "put"),
    }[point]
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(*where, crash)
            with pytest.raises(Crash):
                stepping(planner.step)
        collector, planner = restarted(collector, opened)
    assert stepping(planner.step) and collector.status().users == second
    assert collector.verify().sound
    with collector._store.read() as connection:
        faded = collector._mode.load(connection).counter.secret["faded"]
    with collector._store.read() as connection:
        rows = [r.values for r, _ in collector._mode.reports(connection, first, second)]
    assert np.array_equal(faded, np.sum(rows, axis=0))


def test_memory_dies_with_its_period_and_with_the_task(tmp_path, opened, clock) -> None:
    deployment = write(LIFETIME, tmp_path, rule='renews = "10d"', keep="true", users=120)
    collector = opened(deployment)
    planner, rng = PlannerLoop(collector), np.random.default_rng(5)
    (anna, ben) = crowd(collector, 2)
    clock.now = 105 * DAY
    edge = deployment.bound.schedule.times[1]
    come(collector, rng, anna, edge - 1)
    stepping(planner.step)
    clock.now = 111 * DAY
    stepping(planner.step)
    assert names(collector), "a batch is open, which is in the period before"
    come(collector, rng, ben, 1)
    stepping(planner.step)
    stepping(planner.step)
    assert names(collector) == [], "the period is over, and nobody has come since"
    come(collector, rng, anna, 120 - edge)
    assert names(collector)
    stepping(planner.step)
    assert collector.status().finished and names(collector) == []
    assert collector.verify().sound  # what is kept does without


def test_so_many_times_in_a_period(tmp_path, opened, clock) -> None:
    text = LIFETIME.replace('"any"', "3")
    collector = opened(write(text, tmp_path, rule='renews = "10d"', keep="true", users=200))
    planner, rng = PlannerLoop(collector), np.random.default_rng(6)
    clock.now = 105 * DAY
    (anna, *others) = crowd(collector, 30)
    reports = trajectories(collector, rng, 4)
    task_id = collector.deployment.task_id
    answer = collector.upload(task_id, reports, anna)
    assert [o.outcome for o in answer.outcomes] == ["accepted"] * 3 + ["refused"]
    assert answer.outcomes[-1].detail == "this token may send 3 report(s) in a period"
    clock.now = 112 * DAY
    assert send(collector, reports[3:], anna) == ["refused"]  # the batch is of the period before
    edge = collector.deployment.bound.schedule.times[1]
    for person in others:
        if collector.status().accepted < edge:
            come(collector, rng, person)
    assert send(collector, reports[3:], anna) == ["accepted"]
    come(collector, rng, anna, 2)
    assert send(collector, trajectories(collector, rng, 1), anna) == ["refused"]
    stepping(planner.step)
    assert collector.verify().sound


def test_verification_finds_a_person_beyond_the_rule(tmp_path, opened, monkeypatch) -> None:
    """A curator that forgets between two uploads counts pairs again."""
    collector = opened(write(LIFETIME, tmp_path, keep="true", users=100))
    (anna,), rng = crowd(collector, 1), np.random.default_rng(7)
    with monkeypatch.context() as patch:
        patch.setattr(Vault, "put_many", lambda *args: None)
        for _ in range(20):
            come(collector, rng, anna)
    stepping(PlannerLoop(collector).step)
    verdict = collector.verify()
    assert not verdict.sound
    assert verdict.problem == "a person taught more in a period than a life may"


def with_features(folder) -> str:
    phi = np.random.default_rng(1).dirichlet(np.ones(3), size=(3, 2, 2)).swapaxes(2, 3)
    np.save(folder / "phi.npy", phi)
    return LIFETIME.replace("horizon = 4", 'horizon = 4\nfeatures = "phi.npy"\ntheta_norm = 1.0')


def test_prefixes_go_on_over_periods_whatever_crashes(tmp_path, opened, clock, monkeypatch) -> None:
    """A counter that sums up begins anew once, from the prefix that is published."""
    rule = 'renews = "10d"'
    collector = opened(write(with_features(tmp_path), tmp_path, rule=rule, keep="true", users=200))
    planner, rng = PlannerLoop(collector), np.random.default_rng(4)
    (anna,), times = crowd(collector, 1), collector.deployment.bound.schedule.times(200)
    clock.now = 105 * DAY
    come(collector, rng, anna, times[0])
    stepping(planner.step)
    clock.now = 120 * DAY
    come(collector, rng, anna, times[1] - times[0])

    def crash(*args, **kwargs):
        raise Crash

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(Billboard, "put", crash)
            with pytest.raises(Crash):
                stepping(planner.step)
        collector, planner = restarted(collector, opened)
    assert stepping(planner.step) and collector.status().users == times[1]
    assert collector.verify().sound
    with collector._store.read() as connection:
        secret = collector._mode.load(connection)
    assert secret.past == [1] and secret.counter.steps == 1
    assert secret.begun.any() and not np.array_equal(secret.begun, secret.prefix)


def test_sums_without_cells_have_a_budget_of_norms(tmp_path, opened, monkeypatch) -> None:
    text = with_features(tmp_path)
    collector = opened(write(text, tmp_path, keep="true", users=100))
    assert collector.deployment.task.lifetime
    (anna, ben), rng, reference = (
        crowd(collector, 2),
        np.random.default_rng(9),
        Reference(collector),
    )
    for who, person in enumerate((anna, ben, anna)):
        for report in come(collector, rng, person, 8):
            reference.add(report, who % 2)
    assert np.array_equal(sums(collector), reference.total)
    assert stepping(PlannerLoop(collector).step) and collector.verify().sound
    with monkeypatch.context() as patch:
        patch.setattr(Vault, "put_many", lambda *args: None)
        (cleo,) = crowd(collector, 1)
        for _ in range(5):  # whose memory is lost every time
            come(collector, rng, cleo)
    assert collector.verify().problem == "a person taught more in a period than a life may"


def test_what_was_remembered_in_another_form_is_refused(tmp_path, opened) -> None:
    collector = opened(write(LIFETIME, tmp_path))
    (anna,), rng = crowd(collector, 1), np.random.default_rng(8)
    come(collector, rng, anna)
    (name,) = [name for name in names(collector) if not name.endswith("key")]
    with collector._store.write() as connection:
        collector._mode._vault.put(connection, name, b"short")
    with pytest.raises(Refused, match="remembered of people has another form"):
        come(collector, rng, anna)
    with collector._store.write() as connection:
        Vault.delete_under(connection, PREFIX)
    with pytest.raises(Refused, match="the key that people are remembered under is missing"):
        come(collector, rng, anna)
    assert collector.status().accepted == 1


def test_numbers_of_periods() -> None:
    renewed = Participation(3, period=10.0)
    assert renewed.period_at(-1.0) == -1 and renewed.period_at(25.0) == 2
    assert Participation(3).period_at(25.0) == 0


def test_tasks_without_a_rule_say_and_store_nothing_new(deploy, opened) -> None:
    collector = opened(deploy(LOCAL))
    assert "rule" not in collector.describe()["task"]
    assert collector.deployment.returning == "Nobody counts how often a person takes part"
    text = LOCAL.replace('"shared"', '"per-device"')
    assert Deployment.parse(text.format(users=9, batch=1, keep="false", more=""), "x.toml").ids
    assert begun(collector) == []
