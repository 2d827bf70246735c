"""The service as a state machine: uploads, lost answers, a virtual clock, and crashes everywhere.

A crash may come before or after any durable step: every transaction, every move of the witness. The
model beside it is a dictionary; what the service counts must be what the dictionary says.
"""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tacit.grid import GRID
from tacit.trajectory import Trajectory
from tacit.wire import messages
from tacit.wire.report_rules import rules_hash
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.modes.local import LocalMode
from tacit_service.planning.loop import PlannerLoop
from tacit_service.responses import IncomingReport, Token
from tacit_service.storage.database import Store
from tacit_service.storage.vault import Vault
from tacit_service.storage.witness import Witness

POPULATION = 60
OPENS, CLOSES = 1_000.0, 20_000.0
DEPLOYMENT = """
[task]
name = "machine"
states = 2
actions = 2
horizon = 2
homogeneous = true

[agent]
{agent}

[population]
users = {population}
tokens = "shared"

[updates]
minimum_batch = 5
accepted_versions = 2
cadence = "10s"

[window]
opens = 1970-01-01T00:16:40Z
closes = 1970-01-01T05:33:20Z

[storage]
witness_on_same_disk = true
keep_reports = true
"""
AGENTS = {
    "local": 'name = "ldp-obi"\nepsilon = 1.0',
    "joint": 'name = "tacit-joint"\nepsilon = 1.0\nfirst = 5',
}


class Crash(BaseException):
    """The power went out."""


class Power:
    """Goes out at the n-th moment from now, before or after something became durable."""

    def __init__(self) -> None:
        self.left: int | None = None

    def moment(self) -> None:
        """One more moment at which it can happen."""
        if self.left is None:
            return
        self.left -= 1
        if self.left < 0:
            self.left = None
            raise Crash

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Wrap every durable step."""
        write, note = Store.write, Witness._write

        @contextlib.contextmanager
        def risky_write(store: Store) -> Iterator[sa.Connection]:
            with write(store) as connection:
                yield connection
                self.moment()  # rolled back
            self.moment()  # committed, nobody was told

        def risky_note(witness: Witness, mark: Any) -> None:
            self.moment()
            note(witness, mark)
            self.moment()

        with (
            mock.patch.object(Store, "write", risky_write),
            mock.patch.object(Witness, "_write", risky_note),
        ):
            yield


class Machine(RuleBasedStateMachine):
    """One task; every rule is something that happens to a real one."""

    mode = "local"

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        path = self.folder / "machine.toml"
        path.write_text(DEPLOYMENT.format(agent=AGENTS[self.mode], population=POPULATION))
        self.deployment = Deployment.load(path)
        self.now = OPENS
        self.power = Power()
        self.counted: dict[str, int] = {}
        self.maybe: dict[str, tuple[IncomingReport, int]] = {}
        self.sent: list[tuple[IncomingReport, int]] = []
        self.noise: dict[str, bytes] = {}
        self.policies: dict[int, bytes] = {}
        self.next = 0
        self.crashes = 0
        self._open()

    def _open(self) -> None:
        self.collector = Collector.open(self.deployment, clock=lambda: self.now)
        self.planner = PlannerLoop(self.collector)
        tokens = self.collector.tokens
        (bearer,) = tokens.issue("device", 1, "machine")
        found = tokens.authenticate(bearer)
        assert found is not None
        self.token: Token = found

    def _at_risk(self, work: Callable[[], Any], moments: int | None) -> Any:
        """Do something; on a crash, start again from what is on disk and return None."""
        self.power.left = moments
        try:
            with self.power.watching():
                return work()
        except Crash:
            self.crashes += 1
            self.collector.close()
            self._open()
            return None
        finally:
            self.power.left = None

    def _report(self, version: int) -> tuple[IncomingReport, int]:
        number = 1 + 7**self.next % 10_000_019
        self.next += 1
        if self.mode == "local":
            values = np.zeros(self.deployment.bound.statistic.layout.size, dtype=np.int64)
            values[0] = number
            message = messages.pack_message(values)
        else:
            life = Trajectory([0, 0, 0], [0, 0], [number / 2**24, 0.0])
            message = messages.pack_trajectory(life, 2)
        name, made_by = f"{number:016x}{self.next:016x}", rules_hash(self.deployment.rules)
        return IncomingReport(name, version, message, rules=made_by), number

    def _upload(self, reports: list[tuple[IncomingReport, int]], moments: int | None) -> None:
        numbers = {report.id: number for report, number in reports}
        before = self.collector.status()
        open_now = OPENS <= self.now < CLOSES
        task_id = self.deployment.task_id
        answer = self._at_risk(
            lambda: self.collector.upload(task_id, [r for r, _ in reports], self.token), moments
        )
        if answer is None:
            self.maybe |= {report.id: (report, number) for report, number in reports}
            return
        for (report, _), outcome in zip(reports, answer.outcomes, strict=True):
            known = report.id in self.counted or report.id in self.maybe
            if outcome.outcome == "accepted":
                assert report.id not in self.counted and open_now
                assert before.version - 1 <= report.version <= before.version
                self.counted[report.id] = numbers[report.id]
            elif outcome.outcome == "duplicate":
                assert known
                self.counted[report.id] = numbers[report.id]
            else:
                assert report.id not in self.counted
            self.maybe.pop(report.id, None)

    @rule(count=st.integers(1, 9), age=st.integers(0, 3), moments=st.none() | st.integers(0, 3))
    def upload(self, count: int, age: int, moments: int | None) -> None:
        """New reports under the newest version, or an older one."""
        version = max(0, self.collector.status().version - age)
        reports = [self._report(version) for _ in range(count)]
        self.sent += reports
        self._upload(reports, moments)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), moments=st.none() | st.integers(0, 3))
    def send_again(self, data: st.DataObject, moments: int | None) -> None:
        """The same bytes as before: the answer was lost, or somebody replays them."""
        chosen = data.draw(st.lists(st.sampled_from(self.sent), min_size=1, unique_by=id))
        self._upload(chosen, moments)

    @rule(moments=st.none() | st.integers(0, 11))
    def plan(self, moments: int | None) -> None:
        """The planner's turn, after the cadence and the lease of a dead planner have run out."""
        self.planner._keep_lease()  # silence is measured from the first look
        self.now += 20.0
        self._at_risk(self.planner.step, moments)

    @rule(seconds=st.sampled_from([1.0, 11.0, 60.0, 2000.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += seconds

    @rule()
    def restart(self) -> None:
        """An orderly stop and start."""
        self.planner.stop()
        self.collector.close()
        self._open()

    @invariant()
    def never_more_than_the_population(self) -> None:
        accepted = self.collector.status().accepted
        assert len(self.counted) <= accepted <= len(self.counted) + len(self.maybe)
        assert accepted <= POPULATION

    @invariant()
    def policies_never_change(self) -> None:
        for version in range(self.collector.status().version + 1):
            sent = self.collector.policy(version).body
            assert self.policies.setdefault(version, sent) == sent

    @invariant()
    def noise_is_drawn_once(self) -> None:
        for name, value in self._secrets().items():
            if name.startswith("noise:"):
                assert self.noise.setdefault(name, value) == value

    def _secrets(self) -> dict[str, bytes]:
        if self.mode == "local":
            return {}
        vault = Vault(self.deployment.key_file, self.deployment.task_id)
        with self.collector._store.read() as connection:
            return {name: vault.get(connection, name) or b"" for name in vault.names(connection)}

    def teardown(self) -> None:
        """Settle what is not known, then compare the exact sums."""
        self.now = min(self.now, CLOSES - 1.0)
        for pair in list(self.maybe.values()):
            self._upload([pair], None)
        unsettled = {number for _, number in self.maybe.values()}
        assert not unsettled
        self.now += 1e6
        while self.planner.step():
            self.now += 11.0
        assert self.collector.status().accepted == len(self.counted)
        assert self.collector.ledger()["verified"]
        assert self._exact() == sum(map(self._worth, self.counted.values()))
        self.planner.stop()
        self.collector.close()
        shutil.rmtree(self.folder)

    def _worth(self, number: int) -> int:
        """What a report with this number adds to the cell that is compared."""
        if self.mode == "local":
            return number
        bound, life = self.deployment.bound, Trajectory([0, 0, 0], [0, 0], [number / 2**24, 0.0])
        out = np.zeros(bound.statistic.layout.size, dtype=np.int64)
        bound.statistic.contribute(life, self.collector.billboard.published(0).publication, 0, out)
        return int(bound.statistic.layout.views(out)["gains"][0])

    def _exact(self) -> int:
        """The same cell behind the wall: absorbed and waiting, or the encrypted batches."""
        layout = self.deployment.bound.statistic.layout
        if self.mode == "joint":
            batches = [v for name, v in self._secrets().items() if name.startswith("batch:")]
            total = sum(np.frombuffer(value, dtype="<i8") for value in batches)
            return int(layout.views(np.array(total))["gains"][0]) if batches else 0
        status = self.collector.status()
        release = self.collector.billboard.published(status.version).release
        absorbed = round(float(release.blocks[layout.blocks[0].name].ravel()[0]) / GRID)
        with self.collector._store.read() as connection:
            waiting = LocalMode.kept(connection, status.users, POPULATION)
            return absorbed + sum(int(report.message[0]) for report in waiting)


class JointMachine(Machine):
    """The same for the curator."""

    mode = "joint"


SETTINGS = settings(
    max_examples=12,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestLocal = Machine.TestCase
TestLocal.settings = SETTINGS
TestJoint = JointMachine.TestCase
TestJoint.settings = SETTINGS


@pytest.mark.parametrize("machine", [Machine, JointMachine], ids=["local", "joint"])
def test_a_release_survives_a_crash_at_every_moment(machine: type[Machine]) -> None:
    """One crash at each durable step of a release in turn; then the release is made after all."""
    for moment in itertools.count():
        world = machine()
        world.upload(count=6, age=0, moments=None)
        world.plan(moments=moment)
        crashed = world.crashes
        world.noise_is_drawn_once()
        world.plan(moments=None)
        world.noise_is_drawn_once()
        world.policies_never_change()
        assert world.collector.status().version == 1
        world.teardown()
        if not crashed:
            break
    assert moment >= (4 if machine is Machine else 10)
