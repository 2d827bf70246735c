"""OneCell: its exact epsilon by enumeration, and what it releases about whom.

On tiny tasks every message has a known probability, computed here by running the device's own code
on every coin and every output of the oracle, for every question that can be asked. Nothing about
privacy, bias or variance is estimated.
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
from tacit.kernels.cells import add_hits
from tacit.kernels.counts import REWARD_STEPS
from tacit.kernels.questions import JOINT, KINDS, MOVE, REWARD, WEIGHT_STEPS
from tacit.policy import TabularPolicy, uniform_policy
from tacit.privacy import Noise, Privatizer, Query, ReplayNoise, SecureNoise, SimulatedNoise
from tacit.privacy.base import Report
from tacit.privacy.finite import SubsetSelection, best_oracle
from tacit.privacy.local import OneCell
from tacit.publication import Publication
from tacit.statistics import Block, Layout, OneStep
from tacit.task import Task
from tacit.trajectory import Trajectory

LEAST = 328
"""The least chance that a planner publishes, in steps of the weights: 0.02."""


def task(H, S=2, A=2, homogeneous=True, participations=1, users=100) -> Task:
    return Task("tabular", H, {"states": S, "actions": A}, homogeneous, users, {}, participations)


def one_cell(epsilon, of: Task, make=OneCell) -> OneCell:
    return make(OneStep(of), of, requested_epsilon=epsilon)


def publication(H, S=2, A=2, seed=0, asked=None) -> Publication:
    """A random table with random chances, as a planner publishes them; and some questions."""
    rng = np.random.default_rng(seed)
    context = {"occupancy": rng.integers(LEAST, WEIGHT_STEPS + 1, size=(H, S))}
    if asked is not None:
        context["questions"] = asked
    return Publication(0, TabularPolicy(rng.integers(A, size=(H, S))), context)


def always(H, h, kind) -> np.ndarray:
    """Shares that ask everybody this one question."""
    return (np.arange(KINDS * H) >= KINDS * h + kind).astype(float)


def questions(H) -> list[tuple[int, int]]:
    """All that can be asked: at the last step the reward only."""
    return [*itertools.product(range(H - 1), range(KINDS)), (H - 1, REWARD)]


def some_shares(H, seed=0) -> np.ndarray:
    return np.cumsum(np.random.default_rng([seed, 9]).dirichlet(np.ones(KINDS * H)))


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
        return publication(3, asked=some_shares(3))

    def contributions(self, count: int = 5) -> list[np.ndarray]:
        rng, privatizer = np.random.default_rng(1), self.make(self.statistic())
        users = [lived(rng.integers(2, size=4), rng.random(3)) for _ in range(count)]
        return [
            contribution(privatizer, user, k, self.publication()) for k, user in enumerate(users)
        ]

    def recorded(self, count: int) -> list[np.ndarray]:
        """Reports of 8 or 4 cells, by the question that each of them is asked."""
        rng, privatizer = np.random.default_rng(2), self.make(self.statistic())
        asked = [privatizer.statistic.question(self.publication(), k) for k in range(count)]
        return [rng.integers(0, 2, size=privatizer.oracles[kind].domain) for _, kind in asked]

    def without_chance(self, contributions: list[np.ndarray]) -> ReplayNoise:
        """A coin and a report for each; one draw more would be an error."""
        reports = self.recorded(len(contributions))
        return ReplayNoise([draw for report in reports for draw in (np.array(0), report)])

    def expected(self, contributions: list[np.ndarray]) -> dict[str, np.ndarray]:
        return plain_release(
            self.make(self.statistic()), self.recorded(len(contributions)), self.publication()
        )


def weight(privatizer, name: str, kind: int, chance: float) -> float:
    """Signal d over variance d / 4 + v of one report, 1 at most; in steps of 2^-14."""
    v = getattr(privatizer.weighing, name)[0 if kind == JOINT else 1]
    least = min(*privatizer.weighing.moves, *privatizer.weighing.rewards)
    exact = (0.25 + least) * chance / (chance / 4 + v)
    return round(exact * WEIGHT_STEPS) / WEIGHT_STEPS


def counted(privatizer, cell, h: int, kind: int, public) -> dict[str, np.ndarray]:
    """The exact weighted counts of one user in cell (s, rho, s'), in what was asked for."""
    blocks = {b.name: np.zeros(b.shape) for b in privatizer.layout.blocks}
    s, rho, following = cell
    a, chance = public.policy.actions[h, s], public.context["occupancy"][h, s] / WEIGHT_STEPS
    if kind != REWARD:
        g = h if blocks["moves"].shape[0] > 1 else 0
        blocks["moves"][g, s, a, following] = weight(privatizer, "moves", kind, chance)
    if kind != MOVE:
        g = h if blocks["rewards"].shape[0] > 1 else 0
        blocks["rewards"][g, s, a, rho] = weight(privatizer, "rewards", kind, chance)
    if h == 0:
        blocks["first"][s] = 1.0
    return blocks


def flat(blocks: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([block.ravel() for block in blocks.values()])


def cells_of(kind: int, S: int) -> list[tuple[int, int, int]]:
    """The domain of a question, in order."""
    rhos, nexts = range(1 if kind == MOVE else 2), range(1 if kind == REWARD else S)
    return list(itertools.product(range(S), rhos, nexts))


def design(privatizer, h: int, kind: int, public) -> np.ndarray:
    """How every cell of the domain counts towards everything released [released, cells]."""
    S = privatizer.statistic.states
    rows = [flat(counted(privatizer, c, h, kind, public)) for c in cells_of(kind, S)]
    rows += [np.zeros_like(rows[0])] * (privatizer.oracles[kind].domain - len(rows))  # padding
    return np.array(rows).T


def plain_release(privatizer, reports, public) -> dict[str, np.ndarray]:
    """What the reports of users 0, 1, ... say: w (hit - q) / (p - q), cell by cell."""
    sums, S = np.zeros(privatizer.layout.size), privatizer.statistic.states
    first_users = 0
    units = {b.name: b.shape for b in privatizer.layout.blocks if b.name.endswith("_unit")}
    seen, total, square, weights = (
        {unit: np.zeros(shape) for unit, shape in units.items()} for _ in range(4)
    )
    for k, report in enumerate(reports):
        h, kind = privatizer.statistic.question(public, k)
        oracle = privatizer.oracles[kind]
        estimates = (report - oracle.q) / (oracle.p - oracle.q)
        sums += design(privatizer, h, kind, public) @ estimates
        first_users += h == 0
        for name in ("moves", "rewards"):
            if kind != {"moves": REWARD, "rewards": MOVE}[name]:
                for s in range(S):
                    chance = public.context["occupancy"][h, s] / WEIGHT_STEPS
                    w = weight(privatizer, name, kind, chance)
                    at, unit = (0, s, public.policy.actions[h, s]), f"{name}_unit"
                    visits = estimates.reshape(S, -1)[s].sum()
                    seen[unit][at] += w**2 * visits
                    total[unit][at] += w * visits
                    square[unit][at] += w**2
                    weights[unit][at] += w
    blocks = privatizer.layout.views(sums)
    blocks["first_users"][:] = first_users
    for unit in seen:
        for at in np.ndindex(seen[unit].shape):
            least = square[unit][at] / weights[unit][at] if weights[unit][at] else 1.0
            ratio = seen[unit][at] / total[unit][at] if total[unit][at] > 0 else least
            blocks[unit][at] = min(max(ratio, least), 1.0)
    return blocks


def test_recorded_draws_are_used_up_exactly() -> None:
    """One coin and one report each, no hidden draw, whatever the question."""
    case = TestOneCell()
    privatizer, contributions = case.make(case.statistic()), case.contributions(12)
    recorded = case.without_chance(contributions)
    for c in contributions:
        privatizer.encode(c, case.publication(), recorded)
    with pytest.raises(InvalidInput, match="all recorded noise was used"):
        recorded.happens(1, 2)
    asked = {privatizer.statistic.question(case.publication(), k)[1] for k in range(12)}
    assert asked == {JOINT, MOVE, REWARD}


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


def worst_at(privatizer, coin: int, public: Publication) -> float:
    """Worst log ratio between any two people whose report has that id."""
    laws: dict[bytes, dict] = {}
    for user in everybody(privatizer.statistic.horizon, privatizer.statistic.states):
        sent = contribution(privatizer, user, coin, public)
        if sent.tobytes() not in laws:
            laws[sent.tobytes()] = messages(privatizer, sent, public)
    return worst_log_ratio(list(laws.values()))


def exactly_epsilon(privatizer, seed: int = 0) -> bool:
    """For every question the loss is that of its oracle, the largest is what the guarantee says."""
    H = privatizer.statistic.horizon
    said, asked = privatizer.guarantee, questions(H)
    losses = [
        worst_at(privatizer, 3, publication(H, seed=seed, asked=always(H, *question)))
        for question in asked
    ]
    declared = [privatizer.oracles[kind].epsilon for _, kind in asked]
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
        assert exactly_epsilon(privatizer, seed=H)


def test_three_states_have_three_domains() -> None:
    """With two states moves and rewards have as many cells; here nothing can be mixed up."""
    privatizer = one_cell(5.0, task(2, S=3))
    assert [oracle.domain for oracle in privatizer.oracles] == [18, 9, 6]
    losses = [
        worst_at(privatizer, 0, publication(2, S=3, asked=always(2, *question)))
        for question in questions(2)
    ]
    assert losses == pytest.approx([5.0] * 4, abs=1e-9)
    assert max(losses) == pytest.approx(privatizer.guarantee.epsilon, abs=1e-12)
    user = lived(np.array([2, 1, 0]), np.array([0.25, 0.5]))
    for question in questions(2):
        assert unbiased(privatizer, user, publication(2, S=3, asked=always(2, *question)))


MALFORMED = {
    "none": None,
    "not numbers": np.full(9, np.nan),
    "falling": np.linspace(1, 0, 9),
    "beyond one": np.linspace(-3, 8, 9),
    "too few": np.linspace(0, 1, 4),
    "infinite": np.full(9, -np.inf),
    "shares": some_shares(3),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_whatever_shares_are_published_epsilon_is_the_same(name) -> None:
    """The id and the shares decide the question; everybody with that id is asked the same."""
    privatizer, asked = one_cell(2.0, task(3)), set()
    for coin in range(8 if name == "shares" else 3):
        public = publication(3, seed=coin, asked=MALFORMED[name])
        h, kind = privatizer.statistic.question(public, coin)
        loss = worst_at(privatizer, coin, public)
        assert loss == pytest.approx(privatizer.oracles[kind].epsilon, abs=1e-12)
        assert loss <= privatizer.guarantee.epsilon + 1e-12
        asked.add((h, kind))
    assert asked <= set(questions(3)) and (len(asked) > 3 or name != "shares")


def test_one_state_has_moves_that_say_nothing() -> None:
    """A domain padded to two cells of which one is never used: nothing is lost."""
    privatizer = one_cell(1.0, task(2, S=1))
    assert [oracle.domain for oracle in privatizer.oracles] == [2, 2, 2]
    public = publication(2, S=1, asked=always(2, 0, MOVE))
    assert worst_at(privatizer, 0, public) == 0.0
    rewards = publication(2, S=1, asked=always(2, 0, REWARD))
    loss = worst_at(privatizer, 0, rewards)
    assert loss == pytest.approx(privatizer.guarantee.epsilon, abs=1e-12)


class Louder(OneCell):
    """Half the noise behind an unchanged guarantee."""

    def __init__(self, statistic, of, *, requested_epsilon) -> None:
        super().__init__(statistic, of, requested_epsilon=requested_epsilon)
        self.oracles = tuple(best_oracle(2 * requested_epsilon, o.domain) for o in self.oracles)


class OneIsLouder(OneCell):
    """Half the noise for one kind of question only."""

    def __init__(self, statistic, of, *, requested_epsilon) -> None:
        super().__init__(statistic, of, requested_epsilon=requested_epsilon)
        joint, move, reward = self.oracles
        self.oracles = joint, best_oracle(2 * requested_epsilon, move.domain), reward


class WrongDomain(OneCell):
    """All questions go through the oracle of joint cells."""

    def encode(self, contribution, publication, noise) -> Report:
        keep, self.oracles = self.oracles, (self.oracles[JOINT],) * KINDS
        try:
            return super().encode(contribution, publication, noise)
        finally:
            self.oracles = keep


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
        h, _ = self.question(publication, coin)
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

    def question(self, publication, coin) -> tuple[int, int]:
        return (self.horizon - 1, REWARD) if self.late else super().question(publication, coin)

    def contribute(self, trajectory, publication, coin, out) -> None:
        self.late = len(trajectory.states) > 0 and trajectory.states[0] == 1
        super().contribute(trajectory, publication, coin, out)


class KindByData(OneStep):
    """Whoever got nothing is not asked about rewards."""

    def question(self, publication, coin) -> tuple[int, int]:
        h, kind = super().question(publication, coin)
        return (h, MOVE) if self.poor and h < self.horizon - 1 else (h, kind)

    def contribute(self, trajectory, publication, coin, out) -> None:
        self.poor = not np.any(trajectory.rewards)
        super().contribute(trajectory, publication, coin, out)


class OwnWeights(OneCell):
    """Weights chosen after the batch: large where the report itself points."""

    def address(self, report, step, kind, publication) -> np.ndarray:
        H, S = publication.policy.actions.shape
        pointed = report.reshape(S, -1).sum(axis=1) > 0
        occupancy = np.where(pointed, WEIGHT_STEPS, LEAST)[None].repeat(H, axis=0)
        chosen = Publication(0, publication.policy, {"occupancy": occupancy})
        return super().address(report, step, kind, chosen)


def mutant(name: str, of: Task, epsilon: float = 1.0) -> OneCell:
    statistic = {
        "by action": WithActions,
        "step by data": StepByData,
        "kind by data": KindByData,
    }.get(name, OneStep)(of)
    make = {
        "louder": Louder,
        "one is louder": OneIsLouder,
        "wrong domain": WrongDomain,
        "drops the coin": DropsTheCoin,
        "by action": ByAction,
        "own weights": OwnWeights,
    }.get(name, OneCell)
    return make(statistic, of, requested_epsilon=epsilon)


@pytest.mark.parametrize(
    "name", ["louder", "one is louder", "by action", "step by data", "kind by data"]
)
def test_broken_privatizers_do_not_have_their_epsilon(name) -> None:
    assert exactly_epsilon(one_cell(1.0, task(2)))
    assert not exactly_epsilon(mutant(name, task(2)))


@pytest.mark.parametrize("kind", range(KINDS))
def test_what_the_broken_ones_reveal(kind) -> None:
    public = publication(2, asked=always(2, 0, kind))
    louder = worst_at(mutant("louder", task(2)), 0, public)
    assert louder == pytest.approx(2.0, abs=1e-9)
    for name in ("by action", "step by data"):
        assert worst_at(mutant(name, task(2)), 0, public) == math.inf
    curious = worst_at(mutant("kind by data", task(2)), 0, public)
    assert (curious == math.inf) == (kind != MOVE)


@pytest.mark.parametrize(("epsilon", "H"), [(0.5, 1), (3.0, 1), (3.0, 2)])
def test_two_users_with_any_rule_from_the_first_report_to_the_second_policy(epsilon, H) -> None:
    """Spec tabular_ldp E14: the joint law of both messages, replacing either user.

    The first message decides policy, weights and shares of questions for the second user, who then
    also lives through something else; the rule is a random function.
    """
    privatizer = one_cell(epsilon, task(H))
    public = publication(H, seed=7, asked=some_shares(H))
    users = everybody(H)[:: 1 if H == 1 else 5]

    def transcripts(first: Trajectory, shift: int) -> dict[bytes, float]:
        law: dict[bytes, float] = {}
        for one, chance in messages(
            privatizer, contribution(privatizer, first, 0, public), public
        ).items():
            seed = int(np.frombuffer(one, dtype=np.int64) @ PRIMES[: len(one) // 8]) % 2**32
            answer = publication(H, seed=seed, asked=some_shares(H, seed))
            second = users[(seed + shift) % len(users)]
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


def moments(privatizer, user, public, coin=0):
    """Exact mean and variance of everything released about one user, and its announced law."""
    law = messages(privatizer, contribution(privatizer, user, coin, public), public)
    values, chances = [], np.array(list(law.values()))
    for message in law:
        secret = privatizer.init()
        privatizer.absorb(secret, Report(np.frombuffer(message, dtype=np.int64).copy()), 0)
        release = privatizer.release(secret, Query(1), None)
        values.append(flat(release.blocks))
    mean = chances @ np.array(values)
    variance = chances @ (np.array(values) - mean) ** 2
    split = [privatizer.layout.views(m) for m in (mean, variance)]
    return *split, release.law


def expected_moments(privatizer, user, public, coin=0):
    """The same from the covariance of the oracle's estimates, and the coin of the reward."""
    S = privatizer.statistic.states
    h, kind = privatizer.statistic.question(public, coin)
    oracle, A = privatizer.oracles[kind], design(privatizer, h, kind, public)
    r = 0.0 if kind == MOVE else user.rewards[h]
    following = 0 if kind == REWARD else user.states[h + 1]
    mean, square = 0.0, 0.0
    for rho, chance in ((0, 1 - r), (1, r)):
        if chance > 0:
            cell = cells_of(kind, S).index((user.states[h], rho, following))
            given = A[:, cell]
            mean = mean + chance * given
            spread = np.einsum("ij,jk,ik->i", A, oracle.covariance(cell), A)
            square = square + chance * (given**2 + spread)
    split = [privatizer.layout.views(m) for m in (mean, square - mean**2)]
    split[0]["first_users"][:] = h == 0
    return split


COUNTS = ("moves", "rewards", "first", "first_users")


def unbiased(privatizer, user, public, coin=0) -> bool:
    mean, _, _ = moments(privatizer, user, public, coin)
    exact, _ = expected_moments(privatizer, user, public, coin)
    return all(np.allclose(mean[name], exact[name], rtol=0, atol=1e-6) for name in COUNTS)


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
        "wrong domain": {(0, JOINT)},
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
            w, cells = weight(privatizer, name, kind, chance), cells if kind == JOINT else 1
            assert said == pytest.approx(w**2 * cells * v, rel=1e-12)
            if kind == JOINT:
                assert (found <= said * (1 + 1e-9)).all() and (found >= said * 5 / 6).all()
            else:
                assert found == pytest.approx([said] * len(found), rel=1e-9)
        assert (variance["first"] > 1e-9).any() == (h == 0)
        assert law.variance("first") == pytest.approx(variance["first"][1], rel=1e-9, abs=1e-9)
        assert law.variance("first_users") == 0.0


def test_variances_add_up_by_squared_weights_where_the_reports_went() -> None:
    """Unplayed actions carry no noise (B2); thirty users, asked all kinds of questions."""
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
                v = getattr(privatizer.weighing, name)[0 if kind == JOINT else 1]
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


# ---- simulated and secure reports ---------------------------------------------------------------


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


# ---- guarantee, refusals ------------------------------------------------------------------------


def test_the_guarantee_names_its_mechanism_and_its_numbers() -> None:
    privatizer = one_cell(1.0, task(3))
    said = privatizer.guarantee
    assert (said.model, said.delta, said.requested_epsilon) == ("local", 0.0, 1.0)
    assert (said.relation, said.unit, said.participations) == ("replace-one", "user", 1)
    assert said.requested_delta == 0.0 and not said.simulated
    assert "subset selection over 8 cells (step)" in said.mechanism
    assert "k-ary response over 4 cells (move)" in said.mechanism
    assert "k-ary response over 4 cells (reward)" in said.mechanism
    for name, oracle in zip(("step", "move", "reward"), privatizer.oracles, strict=True):
        assert said.noise[f"{name} p"] == oracle.p and said.noise[f"{name} q"] == oracle.q
        assert said.noise[f"{name} domain"] == oracle.domain
    assert any("do not depend on the user's data" in line for line in said.assumptions)


def test_one_step_tasks_have_one_oracle() -> None:
    said = one_cell(1.0, task(1)).guarantee
    assert set(said.noise) == {"reward domain", "reward p", "reward q"}
    assert "8 cells" not in said.mechanism


def test_somebody_who_comes_back_pays_for_every_time() -> None:
    privatizer = one_cell(1.5, task(2, participations=3))
    said = privatizer.guarantee
    assert privatizer.oracles == tuple(best_oracle(0.5, domain) for domain in (8, 4, 4))
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
    """Recomputed for oracles of 2, 2 and 3: the largest epsilon, and a delta at what was asked."""
    privatizer = one_cell(1.0, task(2))
    for largest in range(KINDS):
        privatizer.oracles = tuple(
            best_oracle(3.0 if kind == largest else 2.0, domain)
            for kind, domain in enumerate((8, 4, 4))
        )
        said = privatizer._account(task(2), 1.0)
        assert said.epsilon == pytest.approx(3.0) and said.requested_epsilon == 1.0
        exact = privatizer.oracles[largest].channel().delta(1.0)
        assert said.delta_at_requested_epsilon == pytest.approx(exact, rel=1e-3) and exact > 0.1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_bad_requests_are_refused(epsilon) -> None:
    with pytest.raises(InvalidInput, match="requested_epsilon = "):
        one_cell(epsilon, task(2))


def test_sums_that_could_overflow_are_refused() -> None:
    with pytest.raises(InvalidInput, match="64-bit"):
        one_cell(1.0, task(2, users=2**33))
    one_cell(1.0, task(2, users=2**33 - 1))


def test_the_largest_sums_that_are_allowed_do_not_overflow() -> None:
    """As many users as there may be, all of whom report every cell, at the largest weight."""
    privatizer, most = one_cell(1.0, task(2, users=2**33 - 1)), 2**33 - 1
    occupancy, table = np.full((2, 2), WEIGHT_STEPS), np.zeros((2, 2), dtype=np.int64)
    sums = privatizer.cell_sums(privatizer.init().sums)
    best = privatizer.weighing._replace(moves=(0.5, 0.5), rewards=(0.5, 0.5), most=0.75)
    add_hits(np.full(8, most), most, JOINT, 0, table, occupancy, best, sums)
    assert int(sums.moves_seen[0, 0, 0, 0]) == most * 4 * WEIGHT_STEPS**2
    assert min(part.min() for part in sums) >= 0


def test_a_report_needs_a_table_and_predictions_of_its_task() -> None:
    privatizer = one_cell(1.0, task(2))
    noise, sent = SimulatedNoise(np.random.default_rng(0)), np.zeros(14, dtype=np.int64)
    table = TabularPolicy(np.zeros((2, 2), dtype=int))
    fine, small = ({"occupancy": np.full((2, n), WEIGHT_STEPS)} for n in (2, 1))
    longer = TabularPolicy(np.zeros((3, 2), dtype=int))
    privatizer.encode(sent, Publication(0, table, fine), noise)
    for bad in (
        Publication(0, table),
        Publication(0, table, small),
        Publication(0, longer, fine),
        Publication(0, uniform_policy(2, 2, 2), fine),
    ):
        with pytest.raises(InvalidInput, match="deterministic table and the occupancy"):
            privatizer.encode(sent, bad, noise)


def test_one_simulated_report_marks_the_release() -> None:
    privatizer, public = one_cell(1.0, task(2)), publication(2)
    secret = privatizer.init()
    for noise in (SecureNoise(), SimulatedNoise(np.random.default_rng(0)), SecureNoise()):
        sent = contribution(privatizer, lived([0, 0, 0], [0.0, 0.0]), 0, public)
        privatizer.absorb(secret, privatizer.encode(sent, public, noise), 0)
    assert privatizer.release(secret, Query(1), SecureNoise()).source == "simulated"
