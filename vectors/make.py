"""Test vectors of the wire, made by the reference: byte tapes in, reports out.

    python vectors/make.py                                  writes the files of this folder again
    python vectors/make.py --count 100000 --out all.json    as many reports, for a long comparison
    python vectors/make.py --searches --count 100000 --out all.json    likewise, of policy searches

A tape is what the source of entropy gives, byte after byte; a client that draws with it as
docs/reference/wire.md says makes the very same body, and uses the tape up. Reports are made here
by the simulator's own mechanism, not by a client. Nothing but these seeds is random: the files
are the same on every machine, as long as the C library rounds exponentials alike.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import searches
from tapes import Tape, drawing_from

from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.privacy.finite.bits import UnaryEncoding
from tacit.privacy.local.one_cell import OneCell
from tacit.privacy.noise import SecureNoise
from tacit.publication import Publication
from tacit.trajectory import Trajectory
from tacit.wire import documents, messages
from tacit.wire.report_rules import rules_hash, rules_of
from tacit.wire.strict_json import canonical, spelt
from tacit_service.config.deployment import Deployment

HERE = Path(__file__).resolve().parent
EACH = 12
"""Reports of a case in the files that are kept."""

KINDS = ("step", "move", "reward")

MOMENTS = (0.0, 2591999.5, 2592000.0, 1.8e9, 1801439999.0, 1801440000.25)
"""Unix times at which somebody begins, some of them at the edges of periods of 30 days."""

TASK = """
[task]
name = "{name}"
states = {states}
actions = {actions}
horizon = {horizon}
homogeneous = true
{more}
[agent]
name = "{agent}"
epsilon = {epsilon}
{options}
[population]
users = 1000
{population}
[storage]
witness_on_same_disk = true
"""

PLAIN: dict[str, Any] = {"agent": "tacit-local", "options": "", "more": "", "population": ""}
CASES: dict[str, dict[str, Any]] = {
    "a week": {"states": 12, "actions": 4, "horizon": 7, "epsilon": 2.0, "asked": True},
    "in turn": {"states": 3, "actions": 2, "horizon": 4, "epsilon": 0.5, "asked": False},
    "one step": {"states": 2, "actions": 2, "horizon": 1, "epsilon": 4.0, "asked": False},
    "one state": {"states": 1, "actions": 3, "horizon": 3, "epsilon": 1.0, "asked": True},
    "comes back": {
        "states": 5, "actions": 2, "horizon": 6, "epsilon": 3.0, "asked": True,
        "population": 'participations = 3\nteaches = "every"',
        "more": "reward_range = [-1.5, 3.25]\nabsorbing_state = 4",
    },
    "every month": {
        "states": 4, "actions": 2, "horizon": 5, "epsilon": 1.5, "asked": True,
        "population": 'participations = "any"\napart = "20h"\nrenews = "30d"',
    },
    "with an end": {
        "states": 4, "actions": 3, "horizon": 5, "epsilon": 9.0, "asked": True,
        "more": "terminal = [3]\nallowed = [[0], [0, 1, 2], [1, 2], []]\nreward_range = [-1, 1]",
    },
    "ends in between": {
        "states": 7, "actions": 2, "horizon": 8, "epsilon": 6.0, "asked": True,
        "more": "terminal = [0, 3, 5]\nreward_range = [-2, 1]\nabsorbing_state = 3",
    },
    "bits": {"states": 9, "actions": 2, "horizon": 3, "epsilon": 1.0, "asked": True, "unary": True},
    "joint": {
        "states": 6, "actions": 4, "horizon": 5, "epsilon": 1.0, "asked": False,
        "agent": "tacit-joint", "more": "terminal = [5]",
    },
    "joint, drawn": {
        "states": 3, "actions": 3, "horizon": 4, "epsilon": 50.0, "asked": False,
        "agent": "private-linopt-po", "options": 'calibration = "tight"',
    },
}  # fmt: skip


class Case:
    """One task, one policy, and people with their luck and their entropy."""

    def __init__(self, name: str) -> None:
        asked = PLAIN | CASES[name]
        self.name, self.rng = name, random.Random(name)
        self.deployment = Deployment.parse(TASK.format(name=name, **asked), "vectors.toml")
        d, bound = self.deployment, self.deployment.bound
        self.rules = rules_of(bound)
        self.oracles = None
        if asked.get("unary"):
            S, epsilon = asked["states"], asked["epsilon"]
            calibrate = UnaryEncoding.calibrate
            oracles = (
                calibrate(epsilon, 2 * S * S),
                calibrate(epsilon, S * S, symmetric=True),
                calibrate(epsilon, 2 * S),
            )
            privatizer = OneCell(
                bound.statistic, d.task, requested_epsilon=epsilon, oracles=oracles
            )
            self.rules |= privatizer.rules()
        elif d.model == "local":
            privatizer = messages.local_privatizer(bound)
        self.privatizer = privatizer if d.model == "local" else None
        self.publication = self._publication(bool(asked["asked"]))
        body = documents.publication_to_json(self.publication, d.task_id, previous="ab" * 32)
        self.policy = canonical(body)

    def _publication(self, asked: bool) -> Publication:
        task, rng = self.deployment.task, np.random.default_rng(self.rng.randrange(2**32))
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        chances = np.where(task.pairs.number >= 0, 1.0, 0.0)
        chances[~chances.any(axis=1)] = 1.0
        drawn = rng.random((H, S, A)) * chances
        context = {}
        if asked:
            shares = rng.dirichlet(np.ones(3 * H))
            context["questions"] = np.cumsum(shares)
        if self.deployment.agent.name == "private-linopt-po":
            law = drawn / drawn.sum(axis=2, keepdims=True)
            return Publication(5, StochasticPolicy(law), context)
        return Publication(3, TabularPolicy(drawn.argmax(axis=2)), context)

    def description(self) -> dict[str, Any]:
        """The answer to GET /v1/task, as far as devices read it."""
        d = self.deployment
        return {
            "wire": documents.VERSION,
            "task_id": d.task_id,
            "model": d.model,
            **d.terms,
            "labels": d.labels,
            "closes": None,
            "delay": d.delay,
            "ids": d.ids,
            "rules": self.rules,
            "state": "open",
            "guarantee": d.guarantee.to_json(),
        }

    def reports(self, count: int) -> Iterator[dict[str, Any]]:
        """People who live, and what they send."""
        for _ in range(count):
            tape = Tape(self.rng)
            identity = self.rng.randbytes(16).hex()
            steps = self._life()
            with drawing_from(tape):
                body, asked = self._sent(identity, steps)
            yield {
                "id": identity,
                "steps": steps,
                "question": asked,
                "tape": tape.used.hex(),
                "body": body.decode(),
            }

    def _life(self) -> list[list[Any]]:
        """State, reward and next state of every step until the end, or until they leave."""
        task, (low, high) = self.deployment.task, self.deployment.settings.task.reward_range
        S, stays = task.sizes["states"], self.rng.choice((1.0, 1.0, 0.7))
        alive = [s for s in range(S) if task.pairs.first[s] < task.pairs.first[s + 1]]
        s, found = self.rng.choice(alive), []
        while len(found) < task.horizon and self.rng.random() < stays:
            following = self.rng.randrange(S)
            reward = self.rng.uniform(low - 0.2, high + 0.2)
            found.append([s, reward, following])
            s = following
            if s not in alive:
                break
        return found

    def _sent(self, identity: str, steps: list[list[Any]]) -> tuple[bytes, list[Any] | None]:
        d = self.deployment
        lived, coin = self._padded(steps), messages.coin(d.task_id, identity)
        if self.privatizer is None:
            message, asked = messages.pack_trajectory(lived, d.task.horizon), None
        else:
            statistic = d.bound.statistic
            contribution = np.zeros(statistic.layout.size, dtype=np.int64)
            statistic.contribute(lived, self.publication, coin, contribution)
            sent = self.privatizer.randomize(contribution, self.publication, SecureNoise())
            message = messages.pack_message(sent)
            h, kind = statistic.question(self.publication, coin)
            asked = [h, KINDS[kind]]
        report = {
            "id": identity,
            "version": self.publication.version,
            "message": message,
            "publication": hashlib.sha256(self.policy).hexdigest(),
            "rules": rules_hash(self.rules),
        }
        return spelt({"task_id": d.task_id, "reports": [report]}), asked

    def _padded(self, steps: list[list[Any]]) -> Trajectory:
        """All H steps. A stochastic policy is asked in their order, also for the steps after."""
        task, section = self.deployment.task, self.deployment.settings.task
        (low, high), H = section.reward_range, task.horizon
        states, actions = [section.absorbing_state] * (H + 1), [0] * H
        rewards, ended = [0.0] * H, False
        for h, (s, reward, following) in enumerate(steps):
            states[h : h + 2] = s, following
            rewards[h] = min(max((reward - low) / (high - low), 0.0), 1.0)
            ended = bool(task.pairs.first[following] == task.pairs.first[following + 1])
        if ended:
            n = len(steps)
            states[n:] = [steps[-1][2]] * (H + 1 - n)
            rewards[n:] = [task.end_reward] * (H - n)
        for h in range(H):
            actions[h] = self._act(h, states[h])
        return Trajectory(np.array(states), np.array(actions), np.array(rewards))

    def _act(self, h: int, s: int) -> int:
        policy = self.publication.policy
        if isinstance(policy, TabularPolicy):
            return int(policy.actions[h, s])
        assert isinstance(policy, StochasticPolicy)
        sums = np.cumsum(policy.probabilities[h, s])
        u = random.SystemRandom().getrandbits(53) / 2**53 * sums[-1]
        return int(np.searchsorted(sums, u, side="right"))

    def vectors(self, count: int) -> dict[str, Any]:
        """The case as it is written."""
        d = self.deployment
        seat = messages.seat("a token", d.task_id)
        return {
            "name": self.name,
            "task": self.description(),
            "task_id": d.task_id,
            "rules_hash": rules_hash(self.rules),
            "epsilon": self._epsilon(),
            "ids of 'a token'": [
                messages.assigned_id(seat, k) for k in range(d.task.participations)
            ],
            **self._periods(seat),
            "policy": self.policy.decode(),
            "reports": list(self.reports(count)),
        }

    def _periods(self, seat: bytes) -> dict[str, Any]:
        """Where budgets renew: the period of a moment, and the id of its report."""
        rule = self.deployment.task.rule
        if rule is None:
            return {}
        found = []
        for moment in MOMENTS:
            number = rule.period_at(moment)
            one = {"begun": moment, "period": number, "id": messages.assigned_id(seat, number)}
            found.append(one)
        return {"periods of 'a token'": found}

    def _epsilon(self) -> dict[str, Any] | None:
        """How much likelier a report can be made, by kind: exactly, and as a logarithm."""
        if self.privatizer is None:
            return None
        found = {}
        for name, oracle in zip(KINDS, self.privatizer.oracles, strict=True):
            if name in self.rules["cells"]:
                p, q = oracle.chances
                ratio = p * (1 - q) / (q * (1 - p))
                if "size" in self.rules["cells"][name]:
                    D, size = oracle.domain, oracle.size
                    ratio = p * (D - size) / ((1 - p) * size)
                exact = [str(ratio.numerator), str(ratio.denominator)]
                found[name] = {"ratio": exact, "epsilon": oracle.epsilon}
        return found


SPELT = [
    {"b": 1, "a": [True, None, '\n"\\/é€😀\x7f'], "": {}},
    [0, -0.0, 1.0, 2.5, 1e21, 1e-7, 123456789012345680000.0, 0.000001, 5e-324, 1e100, -1.5e-10],
    {"€": 1, "\r": 2, "1": 3, "😀": 4, "ö": 5, "דּ": 6, "\x80": 7},
]


def files(count: int) -> dict[str, Any]:
    """All that this folder holds."""
    every = {name: Case(name).vectors(count) for name in CASES}
    joint = {name for name in CASES if CASES[name].get("agent")}
    return {
        "spelling.json": [{"value": value, "spelt": spelt(value).decode()} for value in SPELT],
        "cells.json": [every[name] for name in CASES if name not in joint],
        "trajectories.json": [every[name] for name in CASES if name in joint],
        "directions.json": searches.directions(),
        "search.json": [searches.Case(name).vectors(count) for name in searches.CASES],
    }


def main() -> None:
    """Write the files, or one large one."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--count", type=int, help="reports in all, over the cases")
    options.add_argument("--out", type=Path, help="one file for all cases")
    options.add_argument("--searches", action="store_true", help="in --out, those of searches")
    given = options.parse_args()
    kind: Any = searches if given.searches else sys.modules[__name__]
    if given.count is not None:
        if given.out is None:
            options.error("--count needs --out, for a file of its own")
        each = -(-given.count // len(kind.CASES))
        given.out.write_text(json.dumps([kind.Case(name).vectors(each) for name in kind.CASES]))
        return
    for name, content in files(EACH).items():
        lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in content)
        (HERE / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
