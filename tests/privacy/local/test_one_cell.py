"""OneCell: its exact epsilon by enumeration, and what it releases about whom.

On tiny tasks every message has a known probability, computed here by running the device's own code
on every coin and every output of the oracle. Nothing about privacy, bias or variance is estimated.
"""

import itertools
import math
from collections import defaultdict
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from contracts.privatizer import TASK, PrivatizerContract
from tacit.errors import InvalidInput
from tacit.kernels.counts import REWARD_STEPS
from tacit.policy import TabularPolicy, uniform_policy
from tacit.privacy import Noise, Privatizer, Query, ReplayNoise, SecureNoise, SimulatedNoise
from tacit.privacy.base import Report
from tacit.privacy.finite import SubsetSelection, best_oracle
from tacit.privacy.local import OneCell
from tacit.publication import Publication
from tacit.statistics import Block, Layout, OneStep
from tacit.task import Task
from tacit.trajectory import Trajectory

FULL = 1024
"""Weight 1, in the steps of the sums."""


def task(H, S=2, A=2, homogeneous=True, participations=1, users=100) -> Task:
    return Task("tabular", H, {"states": S, "actions": A}, homogeneous, users, {}, participations)


def one_cell(epsilon, of: Task, make=OneCell) -> OneCell:
    return make(OneStep(of), of, requested_epsilon=epsilon)


def publication(H, S=2, A=2, seed=0) -> Publication:
    """A random table with random weights, as a planner publishes them."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(20, FULL + 1, size=(H, S))
    return Publication(0, TabularPolicy(rng.integers(A, size=(H, S))), {"weights": weights})


def lived(states, rewards, actions=None) -> Trajectory:
    return Trajectory(states, np.zeros(len(rewards), int) if actions is None else actions, rewards)


def contribution(privatizer, trajectory, coin, public) -> np.ndarray:
    out = np.zeros(privatizer.statistic.layout.size, dtype=np.int64)
    privatizer.statistic.contribute(trajectory, public, coin, out)
    return out


# ---- the contract -------------------------------------------------------------------------------


class TestOneCell(PrivatizerContract):
    subject: ClassVar[type] = OneCell

    def statistic(self) -> OneStep:
        return OneStep(TASK)

    def make(self, statistic: OneStep) -> Privatizer:
        return OneCell(statistic, TASK, requested_epsilon=1.0)

    def noise(self) -> Noise:
        return SimulatedNoise(np.random.default_rng(5))

    def publication(self) -> Publication:
        return publication(3)

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        rng, privatizer = np.random.default_rng(1), self.make(self.statistic())
        users = [lived(rng.integers(2, size=4), rng.random(3)) for _ in range(count)]
        return [
            contribution(privatizer, user, k, self.publication()) for k, user in enumerate(users)
        ]

    def recorded(self, count: int) -> list[np.ndarray]:
        """Reports about steps 0, 1, 2 in turn: of 8, 8 and 4 cells."""
        rng = np.random.default_rng(2)
        return [rng.integers(0, 2, size=4 if k % 3 == 2 else 8) for k in range(count)]

    def without_chance(self, contributions: list[np.ndarray]) -> ReplayNoise:
        """A coin and a report for each; one draw more would be an error."""
        reports = self.recorded(len(contributions))
        return ReplayNoise([draw for report in reports for draw in (np.array(0), report)])

    def expected(self, contributions: list[np.ndarray]) -> dict[str, np.ndarray]:
        return plain_release(
            self.make(self.statistic()), self.recorded(len(contributions)), self.publication()
        )


def plain_release(privatizer, reports, public) -> dict[str, np.ndarray]:
    """What the reports about steps 0, 1, ... in turn say: w (hit - q) / (p - q), cell by cell."""
    blocks = {b.name: np.zeros(b.shape) for b in privatizer.layout.blocks}
    H, S = public.policy.actions.shape
    for k, report in enumerate(reports):
        h = k % H
        oracle = privatizer.last_oracle if h == H - 1 else privatizer.oracle
        estimates = ((report - oracle.q) / (oracle.p - oracle.q)).reshape(S, 2, -1)
        g = h if blocks["transitions"].shape[0] > 1 else 0
        for s in range(S):
            a, w = public.policy.actions[h, s], public.context["weights"][h, s] / FULL
            if h == H - 1:
                blocks["last"][s, a] += w * estimates[s, :, 0]
            else:
                blocks["transitions"][g, s, a] += w * estimates[s]
            if h == 0:
                blocks["first"][s] += estimates[s].sum()
        blocks["first_users"] += h == 0
    return blocks


def test_recorded_draws_are_used_up_exactly() -> None:
    """One coin and one report each, no hidden draw."""
    case = TestOneCell()
    privatizer, contributions = case.make(case.statistic()), case.contributions(3)
    recorded = case.without_chance(contributions)
    for c in contributions:
        privatizer.encode(c, case.publication(), recorded)
    with pytest.raises(InvalidInput, match="all recorded noise was used"):
        recorded.happens(1, 2)


# ---- exact privacy ------------------------------------------------------------------------------


class Chosen:
    """Noise that draws what it is told, and notes how likely that was."""

    source = "replay"

    def __init__(self, coin: bool, output: int) -> None:
        self.coin, self.output, self.chance = coin, output, Fraction(1)

    def happens(self, chance: int, of: int) -> bool:
        self.chance *= Fraction(chance, of) if self.coin else 1 - Fraction(chance, of)
        return self.coin

    def randomize(self, randomizer, value) -> np.ndarray:
        rows, law = table(randomizer)
        self.outputs, self.law = len(rows), law[value]
        return rows[self.output % len(rows)].copy()


TABLES: dict = {}


def table(oracle):
    """Outputs and probabilities of an oracle, computed once."""
    if oracle not in TABLES:
        TABLES[oracle] = oracle.outputs(), oracle.pmf()
    return TABLES[oracle]


def messages(privatizer, sent: np.ndarray, public: Publication) -> dict[bytes, float]:
    """Probability of every message about one contribution: all coins, all outputs."""
    law: dict[bytes, float] = defaultdict(float)
    for coin in (False, True):
        output, outputs = 0, 1
        while output < outputs:
            noise = Chosen(coin, output)
            message = privatizer.encode(sent, public, noise).values
            outputs = noise.outputs
            law[message.tobytes()] += float(noise.chance) * noise.law[output]
            output += 1
    return law


def worst_log_ratio(laws: list[dict[bytes, float]]) -> float:
    """Over all messages, and all pairs of users."""
    worst = 0.0
    for message in set().union(*laws):
        chances = [law.get(message, 0.0) for law in laws]
        if min(chances) == 0.0 < max(chances):
            return math.inf
        if max(chances) > 0.0:
            worst = max(worst, math.log(max(chances)) - math.log(min(chances)))
    return worst


def everybody(H, S=2) -> list[Trajectory]:
    """All states, some rewards and actions: whatever differs between two people."""
    users = []
    for i, states in enumerate(itertools.product(range(S), repeat=H + 1)):
        for reward in (0.0, 1.0, 0.3):
            rewards = np.roll(np.resize([reward, 1.0, 0.0], H), i % H)
            rewards[i % H] = reward
            users.append(lived(np.array(states), rewards, np.resize([i % 2, 1], H)))
    users += [lived(np.array(s), np.full(H, 0.7)) for s in ([0] * H, [1] * (H + 1))]
    return users + [lived([], [])]


def worst_at(privatizer, step: int, public: Publication) -> float:
    """Worst log ratio between any two people who report about that step."""
    laws: dict[bytes, dict] = {}
    for user in everybody(privatizer.statistic.horizon):
        sent = contribution(privatizer, user, step, public)
        laws.setdefault(sent.tobytes(), messages(privatizer, sent, public))
    return worst_log_ratio(list(laws.values()))


def exactly_epsilon(privatizer, public: Publication) -> bool:
    """At every step the loss is that of its oracle, the largest is what the guarantee says."""
    H = privatizer.statistic.horizon
    said = privatizer.guarantee
    losses = [worst_at(privatizer, h, public) for h in range(H)]
    declared = [privatizer.oracle.epsilon] * (H - 1) + [privatizer.last_oracle.epsilon]
    return bool(
        np.allclose(losses, declared, rtol=0, atol=1e-12)
        and abs(max(losses) - said.epsilon) < 1e-12
        and said.epsilon <= said.requested_epsilon
        and said.delta == said.delta_at_requested_epsilon == 0.0
    )


@pytest.mark.parametrize("H", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0, 20.0])
def test_the_worst_log_ratio_of_all_messages_is_the_guarantee(epsilon, H) -> None:
    for homogeneous in (True, False) if epsilon > 1.0 else (H != 3,):
        privatizer = one_cell(epsilon, task(H, homogeneous=homogeneous))
        assert exactly_epsilon(privatizer, publication(H, seed=H))


class Louder(OneCell):
    """Half the noise behind an unchanged guarantee."""

    def __init__(self, statistic, of, *, requested_epsilon) -> None:
        super().__init__(statistic, of, requested_epsilon=requested_epsilon)
        self.oracle = best_oracle(2 * requested_epsilon, self.oracle.domain)
        self.last_oracle = best_oracle(2 * requested_epsilon, self.last_oracle.domain)


class WrongDomain(OneCell):
    """The last step goes through the oracle of the other steps."""

    def encode(self, contribution, publication, noise) -> Report:
        keep, self.last_oracle = self.last_oracle, self.oracle
        try:
            return super().encode(contribution, publication, noise)
        finally:
            self.last_oracle = keep


class DropsTheCoin(OneCell):
    """Reports rewards above 1/2 as 1: another law, not a mixture."""

    def encode(self, contribution, publication, noise) -> Report:
        cell = self.statistic.layout.views(contribution)["cell"]
        rounded = contribution.copy()
        self.statistic.layout.views(rounded)["cell"][:] = np.rint(cell / REWARD_STEPS)
        self.statistic.layout.views(rounded)["cell"][:] *= REWARD_STEPS
        return super().encode(rounded, publication, noise)


class WithActions(OneStep):
    """Also tells which action was taken."""

    def __init__(self, of: Task) -> None:
        super().__init__(of)
        self.layout = Layout([*self.layout.blocks, Block("action", (of.sizes["actions"],))])

    def contribute(self, trajectory, publication, coin, out) -> None:
        super().contribute(trajectory, publication, coin, out)
        h = self.step(coin)
        taken = trajectory.actions[h] if h < len(trajectory.actions) else 0
        self.layout.views(out)["action"][taken] = 1


class ByAction(OneCell):
    """Addresses the report by the action taken instead of the action advised."""

    def encode(self, contribution, publication, noise) -> Report:
        taken = int(np.argmax(self.statistic.layout.views(contribution)["action"]))
        table = np.full_like(publication.policy.actions, taken)
        return super().encode(
            contribution, Publication(0, TabularPolicy(table), publication.context), noise
        )


class StepByData(OneStep):
    """Whoever was in state 1 reports about the last step."""

    def contribute(self, trajectory, publication, coin, out) -> None:
        late = len(trajectory.states) > 0 and trajectory.states[0] == 1
        super().contribute(trajectory, publication, self.horizon - 1 if late else coin, out)


class OwnWeights(OneCell):
    """Weights chosen after the batch: large where the report itself points."""

    def address(self, report, step, publication) -> np.ndarray:
        H, S = publication.policy.actions.shape
        pointed = report.reshape(S, -1).sum(axis=1) > 0
        weights = np.where(pointed, FULL, 20)[None].repeat(H, axis=0)
        chosen = Publication(0, publication.policy, {"weights": weights})
        return super().address(report, step, chosen)


def mutant(name: str, of: Task, epsilon: float = 1.0) -> OneCell:
    statistic = {"by action": WithActions, "step by data": StepByData}.get(name, OneStep)(of)
    make = {
        "louder": Louder,
        "wrong domain": WrongDomain,
        "drops the coin": DropsTheCoin,
        "by action": ByAction,
        "own weights": OwnWeights,
    }.get(name, OneCell)
    return make(statistic, of, requested_epsilon=epsilon)


@pytest.mark.parametrize("name", ["louder", "by action", "step by data"])
def test_broken_privatizers_do_not_have_their_epsilon(name) -> None:
    assert exactly_epsilon(one_cell(1.0, task(2)), publication(2))
    assert not exactly_epsilon(mutant(name, task(2)), publication(2))


def test_what_the_broken_ones_reveal() -> None:
    louder = worst_at(mutant("louder", task(2)), 0, publication(2))
    assert louder == pytest.approx(2.0, abs=1e-9)
    for name in ("by action", "step by data"):
        assert worst_at(mutant(name, task(2)), 0, publication(2)) == math.inf


@pytest.mark.parametrize(("epsilon", "H"), [(0.5, 1), (3.0, 1), (3.0, 2)])
def test_two_users_with_any_rule_from_the_first_report_to_the_second_policy(epsilon, H) -> None:
    """Spec tabular_ldp E14: the joint law of both messages, replacing either user.

    The first message decides policy, weights and step of the second user, who then also lives
    through something else; the rule is a random function.
    """
    privatizer, public = one_cell(epsilon, task(H)), publication(H, seed=7)
    users = everybody(H)[:: 1 if H == 1 else 5]

    def transcripts(first: Trajectory, shift: int) -> dict[bytes, float]:
        law: dict[bytes, float] = {}
        for one, chance in messages(
            privatizer, contribution(privatizer, first, 0, public), public
        ).items():
            seed = int(np.frombuffer(one, dtype=np.int64) @ PRIMES[: len(one) // 8]) % 2**32
            answer, second = publication(H, seed=seed), users[(seed + shift) % len(users)]
            sent = contribution(privatizer, second, seed, answer)
            for two, then in messages(privatizer, sent, answer).items():
                law[one + two] = chance * then
        return law

    replaced_first = [transcripts(user, 0) for user in users]
    assert abs(worst_log_ratio(replaced_first) - epsilon) < 1e-12
    replaced_second = [transcripts(users[0], shift) for shift in range(len(users))]
    assert abs(worst_log_ratio(replaced_second) - epsilon) < 1e-12
    assert sum(replaced_first[0].values()) == pytest.approx(1.0, abs=1e-12)


PRIMES = np.array([p for p in range(2, 1000) if all(p % d for d in range(2, p))], dtype=np.int64)


# ---- bias and variance --------------------------------------------------------------------------


def moments(privatizer, user, coin, public):
    """Exact mean and variance of everything released about one user."""
    law = messages(privatizer, contribution(privatizer, user, coin, public), public)
    values, chances = [], np.array(list(law.values()))
    for message in law:
        secret = privatizer.init()
        privatizer.absorb(secret, Report(np.frombuffer(message, dtype=np.int64).copy()), 0)
        release = privatizer.release(secret, Query(1), None)
        values.append(np.concatenate([b.ravel() for b in release.blocks.values()]))
    mean = chances @ np.array(values)
    variance = chances @ (np.array(values) - mean) ** 2
    split = [privatizer.layout.views(m) for m in (mean, variance)]
    return *split, release.law


def truth(privatizer, user, coin, public):
    """The exact weighted counts of one user."""
    blocks = {b.name: np.zeros(b.shape) for b in privatizer.layout.blocks}
    H, S = public.policy.actions.shape
    h = coin % H
    s, r = user.states[h], user.rewards[h]
    a, w = public.policy.actions[h, s], public.context["weights"][h, s] / FULL
    if h == H - 1:
        blocks["last"][s, a] = w * np.array([1 - r, r])
    else:
        g = h if blocks["transitions"].shape[0] > 1 else 0
        blocks["transitions"][g, s, a, :, user.states[h + 1]] = w * np.array([1 - r, r])
    if h == 0:
        blocks["first"][s] = blocks["first_users"][0] = 1
    return blocks


def unbiased(privatizer, user, coin, public) -> bool:
    mean, _, _ = moments(privatizer, user, coin, public)
    exact = truth(privatizer, user, coin, public)
    return all(np.allclose(mean[name], exact[name], rtol=0, atol=1e-6) for name in exact)


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
    for user, coin in itertools.product(USERS[H, S], range(H)):
        assert unbiased(privatizer, user, coin, publication(H, S, seed=coin))


@pytest.mark.parametrize("name", ["wrong domain", "drops the coin", "own weights"])
def test_broken_privatizers_are_biased(name) -> None:
    """What privacy alone would survive, such as weights chosen after the batch."""
    privatizer, public = mutant(name, task(2)), publication(2)
    assert not all(unbiased(privatizer, user, h, public) for user in USERS[2, 2] for h in range(2))


@pytest.mark.parametrize(("H", "S"), [(1, 2), (2, 2), (3, 2)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_law_is_the_variance_for_users_outside_a_cell(epsilon, H, S) -> None:
    """And p (1-p) / (p-q)^2 inside it; the published law counts everybody as outside."""
    privatizer = one_cell(epsilon, task(H, S, homogeneous=False))
    for coin in range(H):
        public = publication(H, S, seed=coin)
        user = lived(np.zeros(H + 1, int), np.ones(H))
        _, variance, law = moments(privatizer, user, coin, public)
        a, w = public.policy.actions[coin], public.context["weights"][coin] / FULL
        oracle = privatizer.last_oracle if coin == H - 1 else privatizer.oracle
        if coin == H - 1:
            found, said = variance["last"], law.variance("last")
            own, other = found[0, a[0], 1], [found[0, a[0], 0], *found[1, a[1]]]
            said = [said[0, a[0]], said[1, a[1]]]
        else:
            found, said = variance["transitions"][coin], law.variance("transitions")[coin]
            own, other = found[0, a[0], 1, 0], [*found[0, a[0], :, 1], *found[1, a[1]].ravel()]
            said = [said[0, a[0]], said[1, a[1]]]
        assert said == pytest.approx(w**2 * oracle.variance_outside, rel=1e-12)
        assert own == pytest.approx(w[0] ** 2 * oracle.variance_inside, rel=1e-9)
        own_state = len(other) - found[1, a[1]].size
        assert other[:own_state] == pytest.approx([said[0]] * own_state, rel=1e-9)
        assert other[own_state:] == pytest.approx([said[1]] * found[1, a[1]].size, rel=1e-9)
        assert (variance["first"] > 0).any() == (coin == 0)
        if coin == 0:
            assert law.variance("first") == pytest.approx(variance["first"][1], rel=1e-9)
        else:
            assert law.variance("first") == 0.0
        assert law.variance("first_users") == 0.0


def test_variances_add_up_by_squared_weights_where_the_reports_went() -> None:
    """Unplayed actions carry no noise (B2); six users, two per step."""
    of = task(3, homogeneous=True)
    privatizer, secret, noise = one_cell(1.0, of), None, SimulatedNoise(np.random.default_rng(0))
    secret, public = privatizer.init(), publication(3, seed=2)
    for k in range(6):
        sent = contribution(privatizer, lived([0, 1, 0, 1], np.zeros(3)), k, public)
        privatizer.absorb(secret, privatizer.encode(sent, public, noise), 0)
    release = privatizer.release(secret, Query(1), noise)
    table, w = public.policy.actions, public.context["weights"] / FULL
    expected, last = np.zeros((1, 2, 2)), np.zeros((2, 2))
    for s in range(2):
        for h in range(2):
            expected[0, s, table[h, s]] += 2 * w[h, s] ** 2 * privatizer.oracle.variance_outside
        last[s, table[2, s]] = 2 * w[2, s] ** 2 * privatizer.last_oracle.variance_outside
    assert release.law.variance("transitions") == pytest.approx(expected, rel=1e-12)
    assert release.law.variance("last") == pytest.approx(last, rel=1e-12)
    assert not release.blocks["transitions"][expected == 0].any()
    assert not release.blocks["last"][last == 0].any() and (last == 0).any()
    assert release.law.variance("first") == 2 * release.law.scale("first") ** 2
    assert release.blocks["first_users"].tolist() == [2.0]
    assert release.law.scale("transitions") ** 2 == pytest.approx(
        privatizer.oracle.variance_outside
    )


def test_the_law_announced_beforehand_is_that_of_weight_one() -> None:
    privatizer = one_cell(1.0, task(4))
    law = privatizer.law(1000)
    assert law.name == "one-cell"
    assert law.variance("transitions") == pytest.approx(750 * privatizer.oracle.variance_outside)
    assert law.variance("last") == pytest.approx(250 * privatizer.last_oracle.variance_outside)
    assert law.variance("first") == pytest.approx(250 * law.scale("first") ** 2)
    assert law.scale("last") ** 2 == pytest.approx(privatizer.last_oracle.variance_outside)


def test_many_users_of_a_staged_task_are_counted_where_they_were() -> None:
    """S = 3, H = 3: every cell within 6 exact standard deviations (error probability 4e-7)."""
    of, rng = task(3, S=3, homogeneous=False), np.random.default_rng(3)
    privatizer, public = one_cell(3.0, of), publication(3, S=3, seed=1)
    noise, secret = SimulatedNoise(rng), privatizer.init()
    exact = {b.name: np.zeros(b.shape) for b in privatizer.layout.blocks}
    for k in range(3000):
        user = lived(rng.integers(3, size=4), rng.random(3))
        sent = contribution(privatizer, user, k, public)
        privatizer.absorb(secret, privatizer.encode(sent, public, noise), 0)
        for name, block in truth(privatizer, user, k, public).items():
            exact[name] += block
    release = privatizer.release(secret, Query(1), noise)
    assert release.users == 3000 and release.source == "simulated"
    assert release.blocks["first_users"].tolist() == [1000.0]
    inside = max(o.variance_inside for o in (privatizer.oracle, privatizer.last_oracle))
    for name, axes in (("transitions", 2), ("last", 1)):
        law = release.law.variance(name)[(...,) + (None,) * axes]
        spread = np.sqrt(law + (law > 0) * (exact[name] + 100) * (inside + 0.25))
        off = np.abs(release.blocks[name] - exact[name])
        assert (off <= 6 * spread).all() and off.max() > 0
    off = np.abs(release.blocks["first"] - exact["first"])
    assert off.max() < 6 * np.sqrt(release.law.variance("first") + 1000 * inside)


# ---- simulated and secure reports ---------------------------------------------------------------


@pytest.mark.parametrize("source", ["simulated", "secure"])
def test_devices_send_the_enumerated_law_and_not_that_of_twice_epsilon(source) -> None:
    """Chi-square at 1e-6 over all messages, for a reward of 0.3 at both kinds of step."""
    privatizer, public = one_cell(1.0, task(2)), publication(2)
    noise = SecureNoise() if source == "secure" else SimulatedNoise(np.random.default_rng(4))
    user = lived([1, 0, 1], [0.3, 0.3])
    for step in range(2):
        sent = contribution(privatizer, user, step, public)
        reports = [privatizer.encode(sent, public, noise) for _ in range(3000)]
        assert {report.source for report in reports} == {source}
        law = messages(privatizer, sent, public)
        drawn = [report.values.tobytes() for report in reports]
        assert set(drawn) <= law.keys()
        observed = [drawn.count(message) for message in law]
        assert fit(observed, law) > 1e-6
        other = contribution(privatizer, lived([1, 0, 1], [0.9, 0.9]), step, public)
        assert fit(observed, messages(privatizer, other, public)) < 1e-6
    loud = best_oracle(2.0, 4)
    loud = SubsetSelection(4, privatizer.last_oracle.size, loud.own)
    privatizer.last_oracle = loud
    assert fit(observed, messages(privatizer, sent, public)) < 1e-6


def fit(observed, law) -> float:
    chances = np.array(list(law.values()))
    return stats.chisquare(observed, chances / chances.sum() * sum(observed)).pvalue


# ---- guarantee, refusals ------------------------------------------------------------------------


def test_the_guarantee_names_its_mechanism_and_its_numbers() -> None:
    privatizer = one_cell(1.0, task(3))
    said = privatizer.guarantee
    assert (said.model, said.delta, said.requested_epsilon) == ("local", 0.0, 1.0)
    assert (said.relation, said.unit, said.participations) == ("replace-one", "user", 1)
    assert said.requested_delta == 0.0 and not said.simulated
    assert "subset selection over 8 cells (step)" in said.mechanism
    assert "k-ary response over 4 cells (last step)" in said.mechanism
    assert said.noise["step p"] == privatizer.oracle.p
    assert said.noise["last step q"] == privatizer.last_oracle.q
    assert said.noise["last step domain"] == 4 and said.noise["step domain"] == 8
    assert any("do not depend on the user's data" in line for line in said.assumptions)


def test_one_step_tasks_have_one_oracle() -> None:
    said = one_cell(1.0, task(1)).guarantee
    assert set(said.noise) == {"last step domain", "last step p", "last step q"}
    assert "8 cells" not in said.mechanism


def test_somebody_who_comes_back_pays_for_every_time() -> None:
    privatizer = one_cell(1.5, task(2, participations=3))
    said = privatizer.guarantee
    assert privatizer.oracle == best_oracle(0.5, 8)
    assert privatizer.last_oracle == best_oracle(0.5, 4)
    assert 1.5 - 1e-9 < said.epsilon <= 1.5
    assert said.participations == 3 and said.delta_at_requested_epsilon == 0.0
    worst = worst_at(privatizer, 0, publication(2))
    assert 3 * worst == pytest.approx(said.epsilon, abs=1e-12)


@settings(max_examples=100)
@given(st.floats(1e-3, 30.0), st.integers(1, 9), st.integers(1, 4))
def test_no_request_is_exceeded_by_a_rounding_error(epsilon, times, S) -> None:
    said = one_cell(epsilon, task(2, S, participations=times)).guarantee
    assert said.epsilon <= epsilon and said.delta_at_requested_epsilon == 0.0
    assert "WEAKER" not in str(said)


def test_the_guarantee_follows_the_noise_not_the_request() -> None:
    """Recomputed for oracles of 2 and 3: the larger epsilon, and a delta at what was asked."""
    privatizer = one_cell(1.0, task(2))
    privatizer.oracle, privatizer.last_oracle = best_oracle(2.0, 8), best_oracle(3.0, 4)
    said = privatizer._account(task(2), 1.0)
    assert said.epsilon == pytest.approx(3.0) and said.requested_epsilon == 1.0
    exact = privatizer.last_oracle.channel().delta(1.0)
    assert said.delta_at_requested_epsilon == pytest.approx(exact, rel=1e-3) and exact > 0.1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_requests_are_refused(epsilon) -> None:
    with pytest.raises(InvalidInput, match="requested_epsilon = "):
        one_cell(epsilon, task(2))


def test_sums_that_could_overflow_are_refused() -> None:
    with pytest.raises(InvalidInput, match="64-bit"):
        one_cell(1.0, task(2, users=2**42))
    one_cell(1.0, task(2, users=2**42 - 1))


def test_a_report_needs_a_table_and_weights() -> None:
    privatizer = one_cell(1.0, task(2))
    noise, sent = SimulatedNoise(np.random.default_rng(0)), np.zeros(10, dtype=np.int64)
    table = TabularPolicy(np.zeros((2, 2), dtype=int))
    weights = {"weights": np.full((2, 2), FULL)}
    for bad in (Publication(0, table), Publication(0, uniform_policy(2, 2, 2), weights)):
        with pytest.raises(InvalidInput, match="deterministic table and the weights"):
            privatizer.encode(sent, bad, noise)


def test_one_simulated_report_marks_the_release() -> None:
    privatizer, public = one_cell(1.0, task(2)), publication(2)
    secret = privatizer.init()
    for noise in (SecureNoise(), SimulatedNoise(np.random.default_rng(0)), SecureNoise()):
        sent = contribution(privatizer, lived([0, 0, 0], [0.0, 0.0]), 0, public)
        privatizer.absorb(secret, privatizer.encode(sent, public, noise), 0)
    assert privatizer.release(secret, Query(1), SecureNoise()).source == "simulated"
