"""One cell per user through a frequency oracle, at full epsilon.

See docs/papers/tabular_ldp.md#b1, and B2 and B4 there. The whole budget goes into one report about
one step. What is sent is the oracle's report and nothing else; what it is added to, and with which
weight, follows from the step and the publication, which are public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.public import questions
from tacit.kernels.public.posterior import noisy_counts
from tacit.kernels.public.questions import MOVE, REWARD, STEP, WEIGHT_STEPS
from tacit.kernels.raw.cells import CellSums, add_hits, cell_index, estimate_cells
from tacit.policies.tabular import TabularPolicy
from tacit.privacy.base import BlockLaw, LocalPrivatizer, Query, Report, Secret, Sent
from tacit.privacy.events import FiniteEvent
from tacit.privacy.finite import best_oracle, packing
from tacit.privacy.finite.cell_answers import answer, domains, marked
from tacit.privacy.finite.channel import Pair
from tacit.privacy.finite.oracle import Oracle
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise, Source, weakest
from tacit.privacy.sentences import ONE_REPORT
from tacit.publication import Publication
from tacit.release import Release
from tacit.statistics import Block, Layout
from tacit.statistics.one_step import EachStep, OneStep
from tacit.task.task import Task
from tacit.validate import number

_NAMES = ("step", "move", "reward")

Oracles = tuple[Oracle, Oracle, Oracle]
"""One for each kind of question: whole steps, moves, rewards."""


class OneCell(LocalPrivatizer[Secret]):
    """Randomizes the cell that was asked for; releases unbiased weighted counts.

    Released are ``moves`` [G, S, A, N] (weighted counts of (s, a, s'), steps before the last; G is
    1 where stages are pooled), ``rewards`` [G', S, A, 2] (of (s, a, rho), all steps), the weight of
    the average visit behind them (``moves_unit``, ``rewards_unit``), and from step 1 ``first`` [L]
    (unweighted start states of ``first_users``). Next states are places, of which there are N, and
    L go on; where some actions are not allowed, or states terminal, pairs [X] stand for [S, A].

    Args:
        statistic: whose cell is randomized.
        task: the public task.
        requested_epsilon: of everything one person sends.
        oracles: by kind of question; by default the best ones at the requested epsilon.
        kinds: of questions that are ever asked; the last step is asked for its reward only.
    """

    public_step = True

    question_owner = "the question, the policy and the weights do not depend on the user's data"

    def __init__(
        self,
        statistic: OneStep | EachStep,
        task: Task,
        *,
        requested_epsilon: float,
        oracles: Oracles | None = None,
        kinds: tuple[int, ...] = (STEP, MOVE, REWARD),
    ) -> None:
        epsilon = number(requested_epsilon, "requested_epsilon", low=0.0, low_open=True)
        self.statistic = statistic
        self.kinds = (REWARD,) if statistic.horizon == 1 else kinds
        self.oracles: Oracles = oracles or best_oracles(
            _share(epsilon, task.participations), domains(statistic.places)
        )
        self.places = len(statistic.places.state)
        self.weighing = weighing(self.oracles, self.places)
        self.layout, self.sums = layouts(statistic, task)
        self.max_increment = 2 * self.places * WEIGHT_STEPS**2  # all ones about one state
        if task.users * self.max_increment >= 2**63:
            raise InvalidInput(
                f"the weighted sums of {task.users:,} users could leave the 64-bit integers; plan "
                "for fewer users"
            )
        self.guarantee = self._account(task, epsilon)

    def _account(self, task: Task, requested: float) -> Guarantee:
        oracles, times = self._used(), task.participations
        worst = max(oracle.epsilon for oracle in oracles.values())
        self.event = FiniteEvent(times * worst, self.channels(), times)
        return self.event.guarantee(
            task,
            model="local",
            mechanism="one question about one step of the trajectory, answered by "
            + ", ".join(f"{o.title} over {o.domain} cells ({name})" for name, o in oracles.items()),
            accountant="exact: largest log ratio over all outputs of each randomizer, enumerated "
            "by classes of equal probability",
            requested=(requested, 0.0),
            noise={
                f"{name} {what}": value
                for name, oracle in oracles.items()
                for what, value in (("domain", oracle.domain), ("p", oracle.p), ("q", oracle.q))
            },
            assumptions=(ONE_REPORT, self.question_owner),
        )

    def channels(self) -> tuple[Pair, ...]:
        """The output laws of a worst pair of cells, for each kind of report."""
        return tuple(oracle.channel() for oracle in self._used().values())

    def _used(self) -> dict[str, Oracle]:
        return {_NAMES[kind]: self.oracles[kind] for kind in self.kinds}

    @property
    def max_influence(self) -> float:
        """All marks that a report can have, or none, in cells that are released as one sum."""
        N, most = self.places, 0.0
        together = {STEP: (1, 2, N, 2 * N), MOVE: (1, N), REWARD: (1, 2)}
        for kind in self.kinds:
            oracle = self.oracles[kind]
            for cells in together[kind]:
                marks = cells if oracle.ones is None else min(cells, oracle.ones)
                heavy = max(marks - cells * oracle.q, cells * oracle.q)
                most = max(most, heavy / (oracle.p - oracle.q))
        return most

    def law(self, users: int) -> BlockLaw:
        """As if all users had been asked about the one cell, alone and with weight 1."""
        v, w = self._per_report()
        return self._law(np.asarray(users * v), np.asarray(users * w), np.array([0, 0, users]))

    def _per_report(self) -> tuple[float, float]:
        """Noise variance of one report's count of moves and of rewards, asked for alone if ever."""
        whole_only = STEP in self.kinds and MOVE not in self.kinds
        return self.weighing.moves[0 if whole_only else 1], self.weighing.rewards[1]

    def _law(self, moves: Array, rewards: Array, first_users: IntArray) -> BlockLaw:
        """From variances of all reports together by (s, a), and reports about step 1 by kind.

        Variance of the estimates for users outside a cell: v times the sum of squared weights. A
        user inside a cell adds p (1-p) / (p-q)^2 instead of v; which users are inside is not
        public, so this is the law but for that correction (docs/papers/tabular_ldp.md#b3). Cells of
        one (s, a) share one variance: the arrays have the shape of the block without its cells. Of
        the ``*_unit``, which are ratios, no law is stated.
        """
        (v, w), exact, N = self._per_report(), np.zeros(()), self.places
        cells = (2 * N, N, 2)  # of one state, by kind of question
        starts = [o.sum_variance(count) for o, count in zip(self.oracles, cells, strict=True)]
        return BlockLaw(
            "one-cell",
            {"moves": math.sqrt(v), "rewards": math.sqrt(w), "first": math.sqrt(starts[REWARD])},
            {
                "moves": moves,
                "rewards": rewards,
                "moves_unit": exact,
                "rewards_unit": exact,
                "first": np.asarray(first_users @ np.array(starts)),
                "first_users": exact,
            },
        )

    def init(self) -> Secret:
        """Zero sums."""
        return Secret(np.zeros(self.sums.size, dtype=np.int64))

    # On the device.

    def rules(self) -> dict[str, Any]:
        """Which cells there are, and the exact chances of the randomizer of each question."""
        cells = {name: oracle.rules() for name, oracle in self._used().items()}
        places = self.statistic.places
        terminal = {"places": places.place.tolist()} if places.live < self.places else {}
        return {"report": "cells", "states": len(places.place), "cells": cells, **terminal}

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """The device's half and the collector's: randomize the cell, then address the report."""
        h, kind, mass = self._asked(contribution, noise)
        report = self._answer(mass, kind, noise)
        return Report(self.address(report, h, kind, publication), noise.source)

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: the oracle's report alone, 64 cells to the integer."""
        _, kind, mass = self._asked(contribution, noise)
        return packing.pack(self._answer(mass, kind, noise))

    def _marked(self, contribution: IntArray) -> list[tuple[int, int, IntArray]]:
        """Step and kind of questions that may be asked, and the masses [N, 2, N] of their cells."""
        return [marked(self.statistic, contribution)]

    def _asked(self, contribution: IntArray, noise: Noise) -> tuple[int, int, IntArray]:
        """The one that is asked."""
        return self._marked(contribution)[0]

    def _answer(self, mass: IntArray, kind: int, noise: Noise) -> IntArray:
        """Round the reward, randomize the cell: the oracle's row of zeros and ones."""
        self._require_covered(kind)
        return answer(mass, kind, self.oracles[kind], noise)

    def _require_covered(self, kind: int) -> None:
        if kind not in self.kinds:
            raise InvalidInput(
                f"a question about {_NAMES[kind]}s was asked, but the guarantee covers only "
                f"{', '.join(_NAMES[k] for k in self.kinds)}; publish other questions"
            )

    # Audits.

    def relative_shift(self, first: IntArray, second: IntArray, publication: Publication) -> float:
        """Share of the answer's chances that moves to other cells, of the worst question."""
        apart = []
        for _, kind, one, two in self._both(first, second):
            self._require_covered(kind)
            apart.append(np.abs(self._chances(kind, two) - self._chances(kind, one)).sum())
        return float(max(apart)) / 2

    def log_ratio(
        self, messages: IntArray, first: IntArray, second: IntArray, publication: Publication
    ) -> Array:
        """That of the oracle for the question that was asked, which itself says nothing."""
        ratio = np.zeros(len(messages))
        for h, kind, one, two in self._both(first, second):
            about, packed = self._about(messages, h)
            oracle = self.oracles[kind]
            rows = packing.unpack(packed[about, : packing.words(oracle.domain)], oracle.domain)
            chances = self._chances(kind, one), self._chances(kind, two)
            ratio[about] = oracle.log_ratio(rows, *chances)
        return ratio

    def _both(
        self, first: IntArray, second: IntArray
    ) -> Iterator[tuple[int, int, IntArray, IntArray]]:
        """Step and kind of every question that may be asked, and the masses of both people."""
        for (h, kind, one), (*other, two) in zip(*map(self._marked, (first, second)), strict=True):
            if [h, kind] != other:
                raise InvalidInput("these contributions answer different questions: ask the same")
            yield h, kind, one, two

    def _about(self, messages: IntArray, h: int) -> tuple[Any, IntArray]:
        """Which messages are about step h, of those that may be, and the packed reports of all."""
        return slice(None), messages

    def _chances(self, kind: int, mass: IntArray) -> Array:
        """Chance of every cell of the oracle to be the one that is randomized."""
        chances = np.zeros(self.oracles[kind].domain)
        for s, rho, following in np.argwhere(mass):
            cell = cell_index(kind, int(s), int(rho), int(following), self.places)
            chances[cell] += mass[s, rho, following] / STEPS
        return chances

    # At the collector.

    def inspect(self, message: IntArray, publication: Publication, coin: int) -> None:
        """Refuse what the oracle of this report's question cannot have said."""
        self._inspected(message, publication, coin)

    def _inspected(
        self, message: IntArray, publication: Publication, coin: int
    ) -> tuple[int, int, IntArray]:
        h, kind, packed = self._question(message, publication, coin)
        self._require_covered(kind)
        packing.inspect(packed, self.oracles[kind].domain, self.oracles[kind].ones)
        return h, kind, packed

    def _question(
        self, message: IntArray, publication: Publication, coin: int
    ) -> tuple[int, int, IntArray]:
        """Step and kind a message is about, and the oracle's packed report in it."""
        assert isinstance(self.statistic, OneStep)
        return *self.statistic.question(publication, coin), message

    def inspect_all(self, sent: Sent) -> None:
        """The same of many messages, in a few steps for all of them (17 times slower for one)."""
        self._sorted(sent)

    def _sorted(self, sent: Sent) -> list[tuple[int, int, IntArray]]:
        """Kind of question, step and the oracle's packed reports [n, words] on it, inspected."""
        if len(sent.messages) != len(sent.coins):
            raise InvalidInput(f"{len(sent.messages)} messages came with {len(sent.coins)} coins")
        steps, kinds, packed = self._questions(sent)
        groups = []
        for kind in np.unique(kinds).tolist():
            self._require_covered(kind)
            chosen, oracle = np.flatnonzero(kinds == kind), self.oracles[kind]
            rows = packing.inspect_all(
                [packed[i] for i in chosen.tolist()], oracle.domain, oracle.ones
            )
            for h in np.unique(steps[chosen]).tolist():
                groups.append((kind, h, rows[steps[chosen] == h]))
        return groups

    def _questions(self, sent: Sent) -> tuple[IntArray, IntArray, Sequence[IntArray]]:
        """Steps and kinds many messages are about, and the oracles' packed reports in them."""
        assert isinstance(self.statistic, OneStep)
        return *self.statistic.questions(sent.publication, sent.coins), sent.messages

    def collect(
        self, message: IntArray, publication: Publication, coin: int, source: Source = "secure"
    ) -> Report:
        """At the collector: the report, addressed by the question that its coin asked."""
        h, kind, packed = self._inspected(message, publication, coin)
        row = packing.unpack(packed[None], self.oracles[kind].domain)[0]
        return Report(self.address(row, h, kind, publication), source)

    def fold(self, secret: Secret, sent: Sent) -> Secret:
        """Many reports at once: those about one question are added up before they are addressed."""
        for kind, h, rows in self._sorted(sent):
            hits = packing.unpack(rows, self.oracles[kind].domain).sum(axis=0)
            self._add(hits, len(rows), (h, kind), sent.publication, secret.sums)
        secret.users += len(sent.messages)
        secret.source = weakest(secret.source, sent.source)
        return secret

    def address(self, report: IntArray, step: int, kind: int, publication: Publication) -> IntArray:
        """The message in the collector's terms: which sums it is added to, and how often."""
        message = np.zeros(self.sums.size, dtype=np.int64)
        self._add(report, 1, (step, kind), publication, message)
        return message

    def _add(
        self, hits: IntArray, reports: int, at: tuple[int, int], entry: Publication, to: IntArray
    ) -> None:
        """Add the summed reports on one question, step and kind, to a flat vector of sums."""
        policy, occupancy = entry.policy, entry.context.get("occupancy")
        places = self.statistic.places
        shape = (self.statistic.horizon, len(places.place))
        if (
            not isinstance(policy, TabularPolicy)
            or occupancy is None
            or not policy.actions.shape == occupancy.shape == shape
        ):
            raise InvalidInput(
                "a one-cell report needs a deterministic table and the occupancy its publication "
                f"predicts, both {shape}; draw a stochastic policy into a table before publishing "
                "it"
            )
        step, kind = at
        report = (hits, reports, kind, step, places.state, places.number)
        add_hits(*report, policy.actions, occupancy, self.weighing, self.cell_sums(to))

    def cell_sums(self, flat: IntArray) -> CellSums:
        """Views of a flat vector of sums, as kernels take them: by pairs."""
        views, X = self.sums.views(flat), int(self.statistic.places.first[-1])
        for name in ("moves", "rewards"):
            for part in (name, f"{name}_weight", f"{name}_square", f"{name}_seen"):
                kept = (*views[part].shape[:2], X)
                outcomes = views[part].shape[-1:] if part == name else ()
                views[part] = views[part].reshape(*kept, *outcomes)
        return CellSums(**views)

    def release(self, secret: Secret, query: Query, noise: Noise) -> Release:
        """Unbiased weighted counts (hits - q sum w n) / (p - q), and the law of their noise."""
        blocks = self.layout.views(np.zeros(self.layout.size))
        exact = self.cell_sums(secret.sums)
        blocks["first_users"][:] = exact.first_users.sum()
        moves, rewards = (np.empty(blocks[f"{name}_unit"].shape) for name in ("moves", "rewards"))
        counts = noisy_counts(blocks, moves, rewards)
        step, move, reward = (oracle.undo for oracle in self.oracles)
        estimate_cells(exact, step, move, reward, counts, blocks["first"])
        law = self._law(moves, rewards, exact.first_users)
        return Release(secret.users, blocks, law, secret.source)


class DrawnCell(OneCell):
    """The same for a step that the user draws with a fair coin of its own, and sends along.

    The step says nothing about the user; that nobody else knows it beforehand is what lets users of
    all steps hide each other behind a shuffler (docs/papers/tabular_ldp.md#b8-crowd).
    """

    served = None
    public_step = False
    question_owner = (
        "the user's own coin decides the step; policy and weights do not depend on the user's data"
    )

    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: the step, then the oracle's report on its cell."""
        h, kind, mass = self._asked(contribution, noise)
        return np.append(np.int64(h), packing.pack(self._answer(mass, kind, noise)))

    def _marked(self, contribution: IntArray) -> list[tuple[int, int, IntArray]]:
        """All steps."""
        cells = self.statistic.layout.views(contribution)["cell"]
        return [(h, self._kind(h), mass) for h, mass in enumerate(cells)]

    def _asked(self, contribution: IntArray, noise: Noise) -> tuple[int, int, IntArray]:
        """A step drawn with a fair coin."""
        H, h = self.statistic.horizon, 0
        while h < H - 1 and not noise.happens(1, H - h):
            h += 1
        return self._marked(contribution)[h]

    def _kind(self, h: int) -> int:
        return REWARD if h == self.statistic.horizon - 1 else STEP

    def _about(self, messages: IntArray, h: int) -> tuple[Any, IntArray]:
        return messages[:, 0] == h, messages[:, 1:]

    def _questions(self, sent: Sent) -> tuple[IntArray, IntArray, Sequence[IntArray]]:
        each = [self._question(message, sent.publication, 0) for message in sent.messages]
        steps, kinds = np.array([asked[:2] for asked in each], dtype=np.int64).reshape(-1, 2).T
        return steps, kinds, [packed for _, _, packed in each]

    def _question(
        self, message: IntArray, publication: Publication, coin: int
    ) -> tuple[int, int, IntArray]:
        H = self.statistic.horizon
        if message.ndim != 1 or not message.size or not 0 <= message[0] < H:
            raise InvalidInput(f"the report must begin with the number of its step, below {H}")
        h = int(message[0])
        return h, self._kind(h), message[1:]


def best_oracles(epsilon: float, domains: tuple[int, int, int]) -> Oracles:
    """The oracle of least variance at epsilon for each kind of question."""
    step, move, reward = (best_oracle(epsilon, cells) for cells in domains)
    return step, move, reward


def weighing(oracles: Oracles, places: int) -> questions.Weighing:
    """The noise in one count by kind of question, and the scale of weights that follows.

    A count of moves adds up two cells of a whole step, a count of rewards as many as places can
    follow.
    """
    step, move, reward = (oracle.variance_outside for oracle in oracles)
    moves, rewards = (2 * step, move), (places * step, reward)
    return questions.Weighing(moves, rewards, questions.OWN_VARIANCE + min(*moves, *rewards))


def layouts(statistic: OneStep | EachStep, task: Task) -> tuple[Layout, Layout]:
    """Of releases, and of the sums behind them."""
    H, places, pairs = statistic.horizon, statistic.places, task.pairs.shape()
    G, every = (1, 1) if task.homogeneous else (max(H - 1, 1), H)
    shapes = {"moves": (G, *pairs), "rewards": (every, *pairs)}
    outcomes = {"moves": len(places.state), "rewards": 2}
    w, w2 = 1.0 / WEIGHT_STEPS, 1.0 / WEIGHT_STEPS**2
    released = [
        *(Block(name, (*shape, outcomes[name])) for name, shape in shapes.items()),
        *(Block(f"{name}_unit", shape) for name, shape in shapes.items()),
        Block("first", (places.live,)),
        Block("first_users", (1,)),
    ]
    summed = [Block(name, (2, *shape, outcomes[name]), w) for name, shape in shapes.items()]
    for what, unit in (("weight", w), ("square", w2), ("seen", w2)):
        summed += [Block(f"{name}_{what}", (2, *shape), unit) for name, shape in shapes.items()]
    summed += [
        Block("first", (questions.KINDS, places.live)),
        Block("first_users", (questions.KINDS,)),
    ]
    return Layout(released), Layout(summed)


def _share(epsilon: float, times: int) -> float:
    """What one of that many reports may cost, rounded so that the sum is not above epsilon."""
    share = epsilon / times
    while share * times > epsilon:
        share = math.nextafter(share, 0.0)
    return share
