"""Vectors of policy searches: directions and coins, actions, and reports of one number.

Made by the simulator's own functions, not by a client. Everything about a report is exact. Actions
and directions pass through logarithms, cosines and exponentials, whose last digits C libraries may
round differently; docs/reference/wire.md says how near is near enough.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tapes import Tape, drawing_from

from tacit.kernels.excitation import uniform_at
from tacit.kernels.public.scores import COINS, search_directions
from tacit.policies.parametric import ParametricPolicy, parameters, scoring
from tacit.privacy.noise import SecureNoise
from tacit.publication import Publication
from tacit.trajectory import VectorTrajectory
from tacit.wire import documents, messages
from tacit.wire.report_rules import rules_hash, rules_of
from tacit.wire.strict_json import canonical, spelt
from tacit_service.config.deployment import Deployment

TASK = """
[task]
name = "{name}"
states = {states}
actions = {actions}
horizon = {horizon}
duration = "1h"
[search]
returns = {returns}
{form}
[agent]
name = "tacit-search"
epsilon = {epsilon}
model = "{model}"
[population]
users = 1000
{population}
[updates]
minimum_batch = 2
delay = "5m"
[storage]
witness_on_same_disk = true
"""

PLAIN: dict[str, Any] = {
    "states": 2, "actions": 2, "horizon": 4, "returns": [-1.5, 3.25], "model": "local",
    "population": "", "form": "scale = [1.0, 2.5]",
}  # fmt: skip
BOX = "scale = [1.0, 2.5]\nleast = [-2.0, 0.0, -1.0]\nmost = [2.0, 1.0, 3.0]\n"
CASES: dict[str, dict[str, Any]] = {
    "one bit": {
        "states": 4, "epsilon": 0.5, "returns": [0, 500], "horizon": 9,
        "form": "scale = [2.4, 3.0, 0.21, 3.0]",
    },
    "three outputs, softmax of three": {
        "actions": 3, "epsilon": 2.0,
        "form": PLAIN["form"] + '\nfeatures = "affine"\nhead = "softmax"',
    },
    "runs of two, quadratic": {
        "epsilon": 3.0, "form": PLAIN["form"] + '\nshift = [0.5, -1.0]\nfeatures = "quadratic"',
    },
    "comes back, four actions": {
        "actions": 4, "epsilon": 9.0, "population": 'participations = 2\nteaches = "every"',
    },
    "most outputs, one of seven": {"states": 7, "epsilon": 12.0, "form": 'features = "one-hot"'},
    "joint": {"model": "joint", "epsilon": 1.0},
    "joint, a box": {"model": "joint", "actions": 3, "epsilon": 1.0, "form": BOX},
    "a clipped box, bumps": {
        "actions": 3, "epsilon": 1.0, "form": BOX + 'head = "clipped"\nfeatures = "rbf"\norder = 3',
    },
    "a drawn box": {"actions": 3, "epsilon": 1.0, "form": BOX + 'head = "uniform"'},
    "a hidden layer of cosines": {
        "actions": 3, "epsilon": 4.0,
        "form": PLAIN["form"] + '\nfeatures = "fourier"\norder = 1\nhidden = 2',
    },
    "tiles": {"epsilon": 1.0, "form": PLAIN["form"] + '\nfeatures = "tiles"\norder = 3'},
    "a matrix": {
        "actions": 3, "epsilon": 1.0,
        "form": PLAIN["form"] + '\nfeatures = "projection"\ntable = "table.npy"',
    },
    "a drawn choice": {
        "actions": 3, "epsilon": 1.0, "form": PLAIN["form"] + '\nhead = "uniform"',
    },
}  # fmt: skip

KEYS = (0, 1, 2**32 - 1, 2**53 + 1, 0x1234_5678_9ABC_DEF0, 2**62 - 1)
DIMENSIONS = (1, 2, 3, 8, 24)


def word(key: int, user: int, cell: int) -> int:
    """The 32-bit word of which a public number in (0, 1) is made."""
    return int(uniform_at(key, user, cell) * 2**32)


def directions() -> list[dict[str, Any]]:
    """Public directions and coins, and the first word that a direction is made of."""
    rng, found = random.Random("directions"), []
    for key in KEYS:
        for d in DIMENSIONS:
            for number in (0, 1, rng.randrange(2, 4 * d + 4), rng.randrange(10**6), 2**40 + 7):
                z = np.empty((1, d), dtype=np.int64)
                search_directions(key, np.array([number], dtype=np.int64), z)
                found.append(
                    {
                        "key": str(key),
                        "number": number,
                        "d": d,
                        "first word": word(key, number // 2 // d, 0),
                        "coin": word(key + COINS, number, 0),
                        "direction": z[0].tolist(),
                    }
                )
    return found


class Case:
    """One task, one policy, and people with tickets, luck and entropy."""

    def __init__(self, name: str) -> None:
        asked = PLAIN | CASES[name]
        self.name, self.rng = name, random.Random(name)
        draw = np.random.default_rng(self.rng.randrange(2**32))
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder, "table.npy"), draw.normal(size=(3, asked["states"])))
            text = TASK.format(name=name, **asked)
            self.deployment = Deployment.parse(text, Path(folder, "vectors.toml"))
        d = self.deployment
        self.rules, self.task = rules_of(d.bound), d.task
        self.privatizer = messages.local_privatizer(d.bound) if d.model == "local" else None
        form = scoring(self.task.sizes, self.task.known)
        low, high = d.reward_range
        policy = ParametricPolicy(
            form,
            draw.normal(size=parameters(form)),
            self.task.horizon,
            sigma=0.5,
            key=self.rng.randrange(2**61, 2**62),
        )
        window = np.array([low + 0.4 * (high - low), 0.3 * (high - low)])
        self.publication = Publication(3, policy, {"window": window})
        body = documents.publication_to_json(self.publication, d.task_id, previous="ab" * 32)
        self.policy = canonical(body)

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
            identity, number = self.rng.randbytes(16).hex(), self.rng.randrange(self.task.users)
            before, tape = Tape(self.rng), Tape(self.rng)
            with drawing_from(before):
                steps, ended, found = self._life(number)
            with drawing_from(tape):
                place, message = self._sent(number, found)
            yield {
                "id": identity,
                "number": number,
                "steps": steps,
                "ended": ended,
                "return": found,
                "place": place,
                "tape before": before.used.hex(),
                "tape": tape.used.hex(),
                "body": spelt({"reports": [{"id": identity, "message": message}]}).decode(),
            }

    def _life(self, number: int) -> tuple[list[list[Any]], bool, float]:
        """Observation, action and reward of every step; whether it ended; the clipped return."""
        (low, high), H = self.deployment.reward_range, self.task.horizon
        entropy = random.SystemRandom()
        entropy.getrandbits(53)  # the delay of the report is drawn first
        policy = self.publication.policy.for_user(number)
        length, ended = self.rng.choice((H, H, self.rng.randrange(H))), self.rng.random() < 0.5
        steps: list[list[Any]] = []
        total = 0.0
        for h in range(length):
            seen = self._observation()
            uniforms = [entropy.getrandbits(53) / 2**53 for _ in range(policy.draws)]
            action = np.asarray(policy.decide(seen, h, uniforms)).tolist()
            reward = self.rng.uniform(low - 0.3 * abs(low), high) * 1.5 / H
            total += reward
            steps.append([seen, action, reward])
        left = length < H and not (ended and steps)
        found = low if left else min(max(total, low), high)
        return steps, bool(ended and steps), found

    def _observation(self) -> Any:
        form = self.publication.policy.form
        if not len(form.scale):
            return self.rng.randrange(self.task.sizes["states"])
        return [self.rng.uniform(-1.5, 1.5) * float(scale) for scale in form.scale]

    def _sent(self, number: int, found: float) -> tuple[int | None, str]:
        if self.privatizer is None:
            return None, messages.pack_return(found)
        nothing, contribution = np.zeros((0, 1)), np.zeros(2, dtype=np.int64)
        lived = VectorTrajectory(nothing, nothing, np.array([found]))
        self.deployment.bound.statistic.contribute(lived, self.publication, number, contribution)
        sent = self.privatizer.randomize(contribution, self.publication, SecureNoise())
        return int(contribution[1]), messages.pack_message(sent)

    def vectors(self, count: int) -> dict[str, Any]:
        """The case as it is written."""
        d = self.deployment
        seat, times = messages.seat("a token", d.task_id), self.task.participations
        return {
            "name": self.name,
            "task": self.description(),
            "task_id": d.task_id,
            "rules_hash": rules_hash(self.rules),
            "epsilon": self._epsilon(),
            "ids of 'a token'": [messages.assigned_id(seat, k) for k in range(times)],
            "policy": self.policy.decode(),
            "reports": list(self.reports(count)),
        }

    def _epsilon(self) -> dict[str, Any] | None:
        """How much likelier a report can be made: exactly, and as a logarithm."""
        if self.privatizer is None:
            return None
        how = self.privatizer.randomizer
        return {"ratio": [str(how.likely), str(how.unlikely)], "epsilon": how.epsilon}
