"""People who come back to a service that is killed: every life is counted as one, exactly.

Each person is a token, takes part again and again, one upload after the other, and budgets are
renewed every few seconds. What they did is known here, so every contribution behind the wall can
be worked out again from the uploads alone: nobody may be counted beyond the rule, nothing that
somebody taught may be forgotten or taught twice, and nothing remembered may lie about in clear.
"""

from __future__ import annotations

import base64
import json
import random
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from tacit.arrays import IntArray
from tacit.publication import Publication
from tacit.statistics.base import LifetimeStatistic, Memory
from tacit.trajectory import Trajectory, together
from tacit.wire import messages
from tacit.wire.report_rules import rules_hash
from tacit_service.collector import Collector
from tacit_service.storage import packing

sys.path.insert(0, str(Path(__file__).parent))
from world import World, secrets_of  # noqa: E402

PEOPLE, CLIENTS = 12, 3
NOBODY = np.zeros(1, dtype=np.int64)


class Returning(World):
    """A few people who come back all the time, through several periods."""

    population = 'users = 20000\nparticipations = "any"\nrenews = "20s"'
    states, horizon = 6, 4

    def __init__(self, folder: Path, *rest: Any, **more: Any) -> None:
        super().__init__(folder, *rest, **more)
        self.folder = folder
        with Collector.open(self.deployment) as collector:
            self.people = collector.tokens.issue("device", PEOPLE, "soak")
            self.publication: Publication = collector.publications.publication(0)
        self.lives: dict[str, list[dict[str, Any]]] = {person: [] for person in self.people}
        self.folded = np.zeros(self.deployment.bound.statistic.layout.size, dtype=np.int64)

    @property
    def statistic(self) -> LifetimeStatistic:
        """The one that bounds lives."""
        statistic: Any = self.deployment.bound.statistic
        assert isinstance(statistic, LifetimeStatistic)
        return statistic

    def report(self, rng: random.Random) -> tuple[dict[str, Any], int]:
        """A participation that no other one is like: its rewards are its own."""
        H, S, A = self.horizon, self.states, 2
        number = rng.randrange(2**24)
        states = [rng.randrange(S) for _ in range(H + 1)]
        actions = [rng.randrange(A) for _ in range(H)]
        rewards = [rng.randrange(2**24) / 2**24 for _ in range(H)]
        message = messages.pack_trajectory(Trajectory(states, actions, rewards), H)
        made_by = rules_hash(self.deployment.rules)
        name = f"{rng.getrandbits(128):032x}"
        return {"id": name, "version": 0, "message": message, "rules": made_by}, number

    def client(self, seed: int) -> None:
        """Some of the people, one upload after the other, each repeated until acknowledged."""
        rng, mine = random.Random(seed), self.people[seed % CLIENTS :: CLIENTS]
        with httpx.Client(base_url=self.service.address, timeout=20.0) as http:
            while not self.stop.is_set():
                person = rng.choice(mine)
                content, numbers = self.upload(rng, rng.randrange(1, 4))
                while not self.is_acknowledged(http, rng, content, numbers, person):
                    if self.gone:
                        return
                    time.sleep(rng.uniform(0.0, 0.1))
                self.lives[person] += json.loads(content)["reports"]

    def expected(self) -> IntArray:
        """What a fold of the same uploads comes to; ``findings`` compares report by report."""
        self.wrong = self._follow()
        return self.folded

    def findings(self) -> list[str]:
        """People beyond the rule, memory lost, and anything that lies about in clear."""
        return self.wrong + self._in_clear()

    def _fold(self, report: dict[str, Any], memory: Memory) -> IntArray:
        """What one participation teaches, after what the memory holds."""
        life = together([messages.unpack_trajectory(report["message"], self.horizon)])
        coin = np.array([messages.coin(self.deployment.task_id, report["id"])])
        row = np.zeros(self.deployment.bound.statistic.layout.size, dtype=np.int64)
        self.statistic.add_people(life, self.publication, coin, memory.of(NOBODY), row)
        return row

    def _follow(self) -> list[str]:
        """Fold every life again, from the period's first report on that the curator kept.

        What somebody teaches first in a period says who it is and which report it was.
        """
        first = {
            self._fold(report, self.statistic.memory(1)).tobytes(): (person, i)
            for person, reports in self.lives.items()
            for i, report in enumerate(reports)
        }
        kept: dict[str, list[IntArray]] = defaultdict(list)
        for value in secrets_of(self.deployment, "kept:").values():
            stored = packing.from_bytes(value)
            for row, name in zip(stored["rows"], stored["people"].tolist(), strict=True):
                kept[name].append(row)
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.memories: list[Memory] = []
        for rows in kept.values():
            if rows[0].tobytes() not in first:
                return ["somebody's period does not begin with all that they taught in it"]
            person, i = first[rows[0].tobytes()]
            memory = self.statistic.memory(1)
            for report, row in zip(self.lives[person][i:], rows, strict=False):
                again = self._fold(report, memory)
                self.folded += again
                if not np.array_equal(again, row):
                    return ["a report was counted otherwise than after the ones before it"]
            self.memories.append(memory)
            found[person].append((i, i + len(rows)))
        for person, reports in self.lives.items():
            stretches = sorted(found[person])
            ends = [0, *(end for _, end in stretches)]
            if [begin for begin, _ in stretches] != ends[:-1] or ends[-1] != len(reports):
                return ["the periods of a person do not hold each of their reports once"]
        return []

    def _in_clear(self) -> list[str]:
        """Uploads, tokens or memory that some file holds as they are."""
        needles = {"a token": [person.encode() for person in self.people]}
        sent = [report["message"] for reports in self.lives.values() for report in reports]
        needles["an upload"] = [message.encode() for message in sent]
        needles["an upload, decoded"] = [base64.b64decode(message)[-32:] for message in sent]
        needles["a memory"] = [
            int(one.spent[0]).to_bytes(8, "little") + one.taught.tobytes() for one in self.memories
        ]
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return [
            f"{kind} is in {path.name}"
            for path in files
            if (content := path.read_bytes())
            for kind, some in needles.items()
            if any(needle in content for needle in some)
        ]
