"""One crafted report weighs at most the mechanism's stated bound, whatever it says."""

import re

import numpy as np
import pytest

from service.conftest import LOCAL
from service.devices import report_under
from tacit.errors import InvalidInput
from tacit.privacy import Query, SecureNoise
from tacit.privacy.base import LocalPrivatizer, Secret, Sent
from tacit.privacy.finite import packing
from tacit.wire import messages as documents
from tacit_service.dashboard import view
from tacit_service.storage import schema

ADDITIVE = ("ldp-obi", "ldp-psrl")


def sums(secret: Secret, privatizer) -> np.ndarray:
    arrays = privatizer.state(secret)
    return np.concatenate([np.ravel(a) for a in arrays.values() if a.dtype.kind in "iu"])


@pytest.mark.parametrize("name", ADDITIVE)
def test_f_reports_move_a_sum_by_f_times_the_bound(deploy, opened, name) -> None:
    deployment = deploy(LOCAL.replace('"tacit-local"', f'"{name}"'))
    publication = opened(deployment).publications.publication(0)
    privatizer, f = documents.local_privatizer(deployment.bound), 7
    worst = privatizer.message_bounds(publication)
    privatizer.inspect(worst, publication, 0)
    for where in (0, len(worst) - 1):
        beyond = worst.copy()
        beyond[where] += 1
        with pytest.raises(InvalidInput, match="goes beyond"):
            privatizer.inspect(beyond, publication, 0)
    secret = privatizer.fold(privatizer.init(), Sent([worst] * f, publication, list(range(f))))
    moved = np.abs(sums(secret, privatizer)).max()
    assert moved == f * privatizer.max_increment


def test_a_report_about_one_cell_weighs_no_more_than_the_bound(deploy, opened) -> None:
    """Also the heaviest answer of all: every cell marked is refused, or within the bound."""
    deployment, rng = deploy(), np.random.default_rng(1)
    publication = opened(deployment).publications.publication(0)
    privatizer = documents.local_privatizer(deployment.bound)
    taken = 0
    for _ in range(40):
        report = report_under(deployment, publication, rng)
        coin, message = (
            documents.coin(deployment.task_id, report.id),
            documents.unpack_message(report.message),
        )
        for crafted in (message, np.full_like(message, -1), np.full_like(message, 2**62)):
            try:
                privatizer.inspect(crafted, publication, coin)
            except InvalidInput:
                continue
            taken += 1
            secret = privatizer.fold(privatizer.init(), Sent([crafted], publication, [coin]))
            assert np.abs(sums(secret, privatizer)).max() <= privatizer.max_increment
    assert taken >= 40


def test_f_crafted_reports_count_for_f_times_what_is_stated(deploy, opened) -> None:
    """In the release itself, about start states: every mark on one state, or none."""
    deployment, f = deploy(), 9
    publication = opened(deployment).publications.publication(0)
    privatizer = documents.local_privatizer(deployment.bound)
    coin = next(k for k in range(99) if deployment.bound.statistic.question(publication, k)[0] == 0)
    _, kind = deployment.bound.statistic.question(publication, coin)
    oracle = privatizer.oracles[kind]
    moved = []
    for state in range(3):
        row = np.zeros(oracle.domain, dtype=np.int64)
        cells = [c for c in range(oracle.domain) if c * 3 // oracle.domain == state]
        row[cells[: oracle.ones]] = 1
        if oracle.ones is not None and len(cells) < oracle.ones:
            row[: oracle.ones - int(row.sum())] = 1
        messages = [packing.pack(row)] * f
        secret = privatizer.fold(privatizer.init(), Sent(messages, publication, [coin] * f))
        release = privatizer.release(secret, Query(0), SecureNoise())
        moved += [np.abs(release.blocks["first"]).max()]
    assert 1.0 <= privatizer.max_influence < 100.0
    assert f < max(moved) <= f * privatizer.max_influence * (1 + 1e-12)


@pytest.mark.parametrize("ids", ["token", "chosen"])
@pytest.mark.parametrize("name", ["tacit-local", *ADDITIVE])
def test_the_dashboard_says_how_far_they_get(deploy, name, ids) -> None:
    deployment = deploy(LOCAL.replace('"tacit-local"', f'"{name}"'), users=5000)
    weight = documents.local_privatizer(deployment.bound).max_influence
    said = view.dishonest(deployment, 2000, ids)
    assert said.startswith("20 dishonest reports among 2,000 can move any one released sum")
    shown = [float(n.replace(",", "")) for n in re.findall(r"as (?:\w+ as )?([\d,.]+)", said)]
    assert shown and 20 * weight <= shown[-1] * (1 + 1e-9) <= 20 * weight * 1.01
    assert ("senders choose" in said) == (name == "tacit-local" and ids == "chosen")


def test_a_mechanism_without_a_bound_is_shown_as_one(deploy, monkeypatch) -> None:
    deployment = deploy(LOCAL, users=5000)
    privatizer = type(documents.local_privatizer(deployment.bound))
    monkeypatch.setattr(privatizer, "max_influence", LocalPrivatizer.max_influence)
    assert "states no bound" in view.dishonest(deployment, 2000, "token")


PERSONAL = LOCAL.replace('tokens = "shared"', 'participations = 2\nteaches = "every"')


def test_nobody_chooses_the_question_where_everybody_has_a_token(deploy, opened) -> None:
    deployment, rng = deploy(PERSONAL), np.random.default_rng(1)
    collector = opened(deployment)
    publication, task_id = collector.publications.publication(0), deployment.task_id
    assert collector.describe()["ids"] == "token"
    mine, other = collector.tokens.issue("device", 2)
    token = collector.tokens.authenticate(mine)
    assert "seat" not in repr(token) and token.seat == documents.seat(mine, task_id)
    ids = [documents.assigned_id(token.seat, k) for k in range(3)]
    stolen = documents.assigned_id(documents.seat(other, task_id), 0)
    named = [None, ids[2], stolen, ids[1], ids[0], ids[1]]
    reports = [report_under(deployment, publication, rng, identity) for identity in named]
    answer = collector.upload(task_id, reports, token)
    outcomes = [one.outcome for one in answer.outcomes]
    assert outcomes == ["invalid"] * 3 + ["accepted", "accepted", "duplicate"]
    assert "follows from the device's token" in answer.outcomes[0].detail
    assert "version 3 of the protocol" in answer.outcomes[0].detail, "an older app is told"


def test_assigned_ids_ask_every_question_in_its_share(deploy) -> None:
    """Chi-squared with 3 degrees of freedom, beyond 30 once in 700,000 runs; tokens are fixed."""
    task_id, H, n = deploy(PERSONAL).task_id, 4, 4000
    coins = [
        documents.coin(task_id, documents.assigned_id(documents.seat(f"t{k}", task_id), 0))
        for k in range(n)
    ]
    asked = np.bincount(np.array(coins) % H, minlength=H)
    assert ((asked - n / H) ** 2 / (n / H)).sum() < 30


@pytest.mark.parametrize(
    "text",
    [
        LOCAL,
        PERSONAL.replace('"tacit-local"', '"ldp-obi"'),
        PERSONAL.replace('"tacit-local"', '"tacit-joint"').replace(
            "[storage]", "[storage]\nwitness_on_same_disk = true"
        ),
    ],
)
def test_ids_are_chosen_where_none_is_needed_or_nobody_is_known(deploy, opened, text) -> None:
    collector = opened(deploy(text))
    assert collector.describe()["ids"] == "chosen"
    assert collector.tokens.authenticate(*collector.tokens.issue("device")).seat is None


def test_a_database_older_than_assigned_ids_goes_on_as_it_began(deploy, opened) -> None:
    deployment = deploy(PERSONAL)
    collector = opened(deployment)
    with collector._store.write() as connection:
        connection.execute(schema.meta.delete().where(schema.meta.c.name == "ids"))
    collector = opened(deployment)
    assert collector.describe()["ids"] == "chosen"
    token = collector.tokens.authenticate(*collector.tokens.issue("device"))
    publication = collector.publications.publication(0)
    report = report_under(deployment, publication, np.random.default_rng(1))
    (outcome,) = collector.upload(deployment.task_id, [report], token).outcomes
    assert outcome.outcome == "accepted"
