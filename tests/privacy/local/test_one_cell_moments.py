"""OneCell: bias and variance of what it releases, exactly; and its real draws."""

import itertools

import numpy as np
import pytest
from scipy import stats

from privacy.local.broken_cells import mutant
from privacy.local.cells import (
    COUNTS,
    always,
    contribution,
    expected_moments,
    flat,
    lived,
    messages,
    moments,
    one_cell,
    publication,
    questions,
    some_shares,
    task,
    unbiased,
    weight,
)
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP, WEIGHT_STEPS
from tacit.privacy import Query, SecureNoise, SimulatedNoise
from tacit.privacy.finite import best_oracle
from tacit.privacy.finite.subset import SubsetSelection

USERS = {
    (H, S): [
        lived(np.random.default_rng(i).integers(S, size=H + 1), np.resize([0.25, 1.0, 0.0, 0.5], H))
        for i in range(2)
    ]
    for H, S in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 2))
}


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize(("H", "S"), list(USERS))
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_released_counts_are_unbiased(epsilon, H, S, homogeneous) -> None:
    privatizer = one_cell(epsilon, task(H, S, homogeneous=homogeneous))
    for user, question in itertools.product(USERS[H, S], questions(H)):
        public = publication(H, S, seed=question[0], asked=always(H, *question))
        assert unbiased(privatizer, user, public)


@pytest.mark.parametrize("name", ["wrong domain", "drops the coin", "own weights"])
def test_broken_privatizers_are_biased(name) -> None:
    """What privacy alone would survive, such as weights chosen after the batch."""
    privatizer = mutant(name, task(2))
    found = {
        q: all(unbiased(privatizer, u, publication(2, asked=always(2, *q))) for u in USERS[2, 2])
        for q in questions(2)
    }
    right = {
        "wrong domain": {(0, STEP)},
        "drops the coin": {(0, MOVE), (1, REWARD)},  # its reward is 1
        "own weights": set(),
    }[name]
    assert {q for q, fine in found.items() if fine} == right


@pytest.mark.parametrize(("H", "S"), list(USERS))
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_every_variance_is_that_of_the_oracle(epsilon, H, S) -> None:
    """Inside and outside of cells, and of sums of joint cells with their covariances."""
    privatizer = one_cell(epsilon, task(H, S, homogeneous=False))
    for user, question in itertools.product(USERS[H, S], questions(H)):
        public = publication(H, S, seed=question[0], asked=always(H, *question))
        _, variance, _ = moments(privatizer, user, public)
        _, exact = expected_moments(privatizer, user, public)
        for name in COUNTS:
            assert np.allclose(variance[name], exact[name], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", range(KINDS))
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_law_is_the_variance_for_users_outside_a_cell(epsilon, kind) -> None:
    """Exactly so for moves and rewards asked for alone; joint cells are counted as independent.

    That overstates: the ones of a report are shared out. By less than a sixth here.
    """
    S = 2
    privatizer, user = one_cell(epsilon, task(3, S, homogeneous=False)), lived([0] * 4, [1.0] * 3)
    for h in range(2):
        public = publication(3, S, seed=h, asked=always(3, h, kind))
        _, variance, law = moments(privatizer, user, public)
        v, a = privatizer.oracles[kind].variance_outside, public.policy.actions[h, 1]
        chance = public.context["occupancy"][h, 1] / WEIGHT_STEPS
        for name, cells in (("moves", 2), ("rewards", S)):
            said, found = law.variance(name)[h, 1, a], variance[name][h, 1, a]
            if kind == {"moves": REWARD, "rewards": MOVE}[name]:
                assert said == 0.0 and not found.any()
                continue
            w, cells = weight(privatizer, name, kind, chance), cells if kind == STEP else 1
            assert said == pytest.approx(w**2 * cells * v, rel=1e-12)
            if kind == STEP:
                assert (found <= said * (1 + 1e-9)).all() and (found >= said * 5 / 6).all()
            else:
                assert found == pytest.approx([said] * len(found), rel=1e-9)
        assert (variance["first"] > 1e-9).any() == (h == 0)
        assert law.variance("first") == pytest.approx(variance["first"][1], rel=1e-9, abs=1e-9)
        assert law.variance("first_users") == 0.0


def test_variances_add_up_by_squared_weights_where_the_reports_went() -> None:
    """Unplayed actions carry no noise (docs/papers/tabular_ldp.md#b2); thirty users."""
    privatizer, noise = one_cell(1.0, task(3, A=3)), SimulatedNoise(np.random.default_rng(0))
    secret, public = privatizer.init(), publication(3, A=3, seed=2, asked=some_shares(3))
    table, chances = public.policy.actions, public.context["occupancy"] / WEIGHT_STEPS
    expected = {name: np.zeros((1, 2, 3)) for name in ("moves", "rewards")}
    starts, reports = np.zeros(KINDS), 0
    for k in range(30):
        sent = contribution(privatizer, lived([0, 1, 0, 1], np.zeros(3)), k, public)
        privatizer.absorb(secret, privatizer.encode(sent, public, noise), 0)
        h, kind = privatizer.statistic.question(public, k)
        for s, name in itertools.product(range(2), expected):
            if kind != {"moves": REWARD, "rewards": MOVE}[name]:
                w = weight(privatizer, name, kind, chances[h, s])
                v = getattr(privatizer.weighing, name)[0 if kind == STEP else 1]
                expected[name][0, s, table[h, s]] += w**2 * v
        starts[kind] += h == 0
        reports += h == 0
    release = privatizer.release(secret, Query(1), noise)
    for name, variance in expected.items():
        assert release.law.variance(name) == pytest.approx(variance, rel=1e-12)
        assert not release.blocks[name][variance == 0].any() and (variance == 0).any()
    per_start = [
        cells * (o.variance_outside + (cells - 1) * o.covariance_outside)
        for o, cells in zip(privatizer.oracles, (4, 2, 2), strict=True)
    ]
    assert release.law.variance("first") == pytest.approx(starts @ per_start, rel=1e-12)
    assert release.blocks["first_users"].tolist() == [reports] and (starts > 0).all()


def test_the_noise_of_one_report_is_that_of_its_oracle() -> None:
    """A move is two joint cells or one, a reward S of them or one."""
    privatizer = one_cell(1.0, task(3, S=3))
    joint, move, reward = (oracle.variance_outside for oracle in privatizer.oracles)
    assert [oracle.domain for oracle in privatizer.oracles] == [18, 9, 6]
    assert privatizer.weighing.moves == (2 * joint, move)
    assert privatizer.weighing.rewards == (3 * joint, reward)
    assert privatizer.weighing.most == 0.25 + min(move, reward)


def test_the_law_announced_beforehand_is_that_of_weight_one() -> None:
    privatizer = one_cell(1.0, task(4))
    law = privatizer.law(1000)
    _, move, reward = privatizer.oracles
    assert law.name == "one-cell"
    assert law.variance("moves") == pytest.approx(1000 * move.variance_outside)
    assert law.variance("rewards") == pytest.approx(1000 * reward.variance_outside)
    assert law.variance("first") == pytest.approx(1000 * law.scale("first") ** 2)
    assert law.scale("rewards") ** 2 == pytest.approx(reward.variance_outside)
    assert law.scale("moves") ** 2 == pytest.approx(move.variance_outside)
    both = 2 * (reward.variance_outside + reward.covariance_outside)
    assert law.scale("first") ** 2 == pytest.approx(both)


def test_many_users_of_a_staged_task_are_counted_where_they_were() -> None:
    """S = 3, H = 3, all questions: within 6 exact standard deviations (error probability 4e-7)."""
    of, rng = task(3, S=3, homogeneous=False), np.random.default_rng(3)
    privatizer, public = one_cell(3.0, of), publication(3, S=3, seed=1, asked=some_shares(3))
    noise, secret = SimulatedNoise(rng), privatizer.init()
    exact, variance = np.zeros((2, privatizer.layout.size))
    for k in range(2000):
        user = lived(rng.integers(3, size=4), rng.choice([0.0, 0.25, 1.0], size=3))
        sent = contribution(privatizer, user, k, public)
        privatizer.absorb(secret, privatizer.encode(sent, public, noise), 0)
        for sums, one in zip(
            (exact, variance), expected_moments(privatizer, user, public, k), strict=True
        ):
            sums += flat(one)
    release = privatizer.release(secret, Query(1), noise)
    assert release.users == 2000 and release.source == "simulated"
    means, variances = privatizer.layout.views(exact), privatizer.layout.views(variance)
    assert np.array_equal(release.blocks["first_users"], means["first_users"])
    for name in ("moves", "rewards", "first"):
        off = np.abs(release.blocks[name] - means[name])
        assert (off <= 6 * np.sqrt(variances[name]) + 1e-9).all()
        assert off.max() > 0.5 * np.sqrt(variances[name].max())


@pytest.mark.parametrize("source", ["simulated", "secure"])
def test_devices_send_the_enumerated_law_and_not_that_of_twice_epsilon(source) -> None:
    """Chi-square at 1e-6 over all messages, for a reward of 0.3 and every question."""
    privatizer, of = one_cell(1.0, task(2)), questions(2)
    noise = SecureNoise() if source == "secure" else SimulatedNoise(np.random.default_rng(4))
    user = lived([1, 0, 1], [0.3, 0.3])
    for h, kind in of:
        public = publication(2, asked=always(2, h, kind))
        sent = contribution(privatizer, user, 0, public)
        reports = [privatizer.encode(sent, public, noise) for _ in range(3000)]
        assert {report.source for report in reports} == {source}
        law = messages(privatizer, sent, public)
        drawn = [report.values.tobytes() for report in reports]
        assert set(drawn) <= law.keys()
        observed = [drawn.count(message) for message in law]
        assert fit(observed, law) > 1e-6
        other = contribution(privatizer, lived([0, 0, 1], [0.9, 0.9]), 0, public)
        assert fit(observed, messages(privatizer, other, public)) < 1e-6
    loud = best_oracle(2.0, 4)
    loud = SubsetSelection(4, privatizer.oracles[REWARD].size, loud.own)
    privatizer.oracles = (*privatizer.oracles[:REWARD], loud)
    assert fit(observed, messages(privatizer, sent, public)) < 1e-6


def fit(observed, law) -> float:
    chances = np.array(list(law.values()))
    return stats.chisquare(observed, chances / chances.sum() * sum(observed)).pvalue
