"""People who come back, for tests of the service."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from service.devices import report_under, trajectories
from tacit.statistics.base import Memory
from tacit.trajectory import together
from tacit.wire import messages
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.responses import IncomingReport, Token

LIFETIME = """
[task]
name = "returning"
states = 3
actions = 2
horizon = 4
homogeneous = true
[agent]
name = "tacit-joint"
epsilon = 4.0
first = 20
[population]
users = {users}
participations = "any"
{rule}
[updates]
minimum_batch = 20
accepted_versions = 1000
[storage]
witness_on_same_disk = true
keep_reports = {keep}
{more}
"""

FIRST = """
[task]
name = "returning"
states = 3
actions = 2
horizon = 4
homogeneous = true
[agent]
name = "{agent}"
epsilon = 4.0
[population]
users = {users}
participations = 30
{rule}
[updates]
minimum_batch = 20
accepted_versions = 1000
[storage]
keep_reports = {keep}
{more}
"""


def write(text: str, folder: Path, users: int = 400, **more: str) -> Deployment:
    """A deployment file with these words in the gaps."""
    gaps = {"users": users, "rule": "", "keep": "false", "more": "", "agent": "tacit-local"} | more
    path = folder / "returning.toml"
    path.write_text(text.format(**gaps))
    return Deployment.load(path)


def crowd(collector: Collector, count: int) -> list[Token]:
    """That many persons, each with a token."""
    found = [collector.tokens.authenticate(t) for t in collector.tokens.issue("device", count)]
    return [token for token in found if token is not None]


def send(collector: Collector, reports: list[IncomingReport], token: Token) -> list[str]:
    """Outcomes of an upload of one person."""
    answer = collector.upload(collector.deployment.task_id, reports, token)
    return [outcome.outcome for outcome in answer.outcomes]


def come(
    collector: Collector, rng: np.random.Generator, token: Token, times: int = 1
) -> list[IncomingReport]:
    """What one person lived through, in so many participations; all are accepted."""
    reports = trajectories(collector, rng, times)
    assert send(collector, reports, token) == ["accepted"] * times
    return reports


def report_of(
    collector: Collector, rng: np.random.Generator, token: Token, period: int
) -> IncomingReport:
    """The one report of a person in a period (local model)."""
    assert token.seat is not None
    publication = collector.publications.publication(collector.policy().version)
    name = messages.assigned_id(token.seat, period)
    return report_under(collector.deployment, publication, rng, name)


class Reference:
    """The same uploads folded by the statistic alone, one after the other, into one sum."""

    def __init__(self, collector: Collector) -> None:
        self.collector, self.statistic = collector, collector.deployment.bound.statistic
        self.total = np.zeros(self.statistic.layout.size, dtype=np.int64)
        self.memories: dict[int, Memory] = {}

    def add(self, report: IncomingReport, person: int) -> None:
        """One participation of a person."""
        deployment = self.collector.deployment
        life = messages.unpack_trajectory(report.message, deployment.task.horizon)
        publication = self.collector.publications.publication(report.version)
        memory = self.memories.setdefault(person, self.statistic.memory(1))
        coin = np.array([messages.coin(deployment.task_id, report.id)])
        nobody = np.zeros(1, dtype=np.int64)
        self.statistic.add_people(
            together([life]), publication, coin, memory.of(nobody), self.total
        )

    def renew(self) -> None:
        """A new period."""
        self.memories.clear()


def sums(collector: Collector) -> np.ndarray:
    """Everything in the encrypted batches, added up (of a task that keeps them)."""
    total = np.zeros(collector.deployment.bound.statistic.layout.size, dtype=np.int64)
    with collector._store.read() as connection:
        vault = collector._mode._vault
        for name in vault.names(connection, "batch:"):
            total += np.frombuffer(vault.get(connection, name), dtype="<i8")
    return total


def stepping(step: Callable[[], bool]) -> int:
    """Plan until there is nothing to plan; how many versions."""
    made = 0
    while step():
        made += 1
    return made
