"""One-cell reports on tiny tasks, enumerated.

Every message has a known probability, computed here by running the device's own code on every coin
and every output of the oracle, for every question that can be asked. Nothing about privacy, bias or
variance is estimated.
"""

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np

from contracts import listed
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP, WEIGHT_STEPS
from tacit.policies.tabular import TabularPolicy
from tacit.privacy import Query
from tacit.privacy.base import Report
from tacit.privacy.local.one_cell import OneCell
from tacit.publication import Publication
from tacit.statistics.one_step import OneStep
from tacit.task.task import Task
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


def weight(privatizer, name: str, kind: int, chance: float) -> float:
    """Signal d over variance d / 4 + v of one report, 1 at most; in steps of 2^-14."""
    v = getattr(privatizer.weighing, name)[0 if kind == STEP else 1]
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
    S = len(privatizer.statistic.places.state)
    rows = [flat(counted(privatizer, c, h, kind, public)) for c in cells_of(kind, S)]
    rows += [np.zeros_like(rows[0])] * (privatizer.oracles[kind].domain - len(rows))  # padding
    return np.array(rows).T


def plain_release(privatizer, reports, public) -> dict[str, np.ndarray]:
    """What the reports of users 0, 1, ... say: w (hit - q) / (p - q), cell by cell."""
    sums, S = np.zeros(privatizer.layout.size), len(privatizer.statistic.places.state)
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
        TABLES[oracle] = listed.outputs(oracle), listed.pmf(oracle)
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
    for user in everybody(privatizer.statistic.horizon, len(privatizer.statistic.places.state)):
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
    S = len(privatizer.statistic.places.state)
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
            spread = np.einsum("ij,jk,ik->i", A, listed.covariance(oracle, cell), A)
            square = square + chance * (given**2 + spread)
    split = [privatizer.layout.views(m) for m in (mean, square - mean**2)]
    split[0]["first_users"][:] = h == 0
    return split


COUNTS = ("moves", "rewards", "first", "first_users")


def unbiased(privatizer, user, public, coin=0) -> bool:
    mean, _, _ = moments(privatizer, user, public, coin)
    exact, _ = expected_moments(privatizer, user, public, coin)
    return all(np.allclose(mean[name], exact[name], rtol=0, atol=1e-6) for name in COUNTS)
