"""The curator: no trajectory kept, no node answered twice, no restored database used."""

import base64
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from scipy.stats import chi2

from service.devices import trajectories
from tacit.errors import InvalidInput
from tacit.privacy.noise import SecureNoise
from tacit.wire import messages
from tacit_service.collector import Collector
from tacit_service.planning.loop import LEASE_SECONDS, PlannerLoop
from tacit_service.planning.publications import PublicationStore
from tacit_service.planning.step import Planning
from tacit_service.responses import ServiceRefused
from tacit_service.storage import schema
from tacit_service.storage.vault import Vault
from tacit_service.storage.witness import Mark, Witness


def send(collector, reports):
    answer = collector.upload(collector.deployment.task_id, reports, None)
    return [outcome.outcome for outcome in answer.outcomes]


@pytest.fixture
def draws(monkeypatch) -> list[int]:
    """Counts the draws of secure noise."""
    made: list[int] = []
    fill = SecureNoise.fill

    def counted(self, law, out):
        made.append(1)
        fill(self, law, out)

    monkeypatch.setattr(SecureNoise, "fill", counted)
    return made


def test_a_task_runs_to_its_end_and_forgets(deploy, opened, joint_text, draws) -> None:
    collector = opened(deploy(joint_text, users=200, batch=40))
    planner, rng = PlannerLoop(collector), np.random.default_rng(1)
    while collector.status().accepted < 200:
        assert send(collector, trajectories(collector, rng, 25)) == ["accepted"] * 25
        while planner.step():
            pass
    published = collector.publications.history()
    assert [p.users for p in published] == [0, 40, 80, 120, 180, 200]
    assert [p.release.source for p in published] == ["none"] + ["secure"] * 5
    assert len(draws) == 5  # one node per release of this counter, and one that closes it
    assert collector.status().finished
    with collector._store.read() as connection:
        assert connection.execute(sa.select(schema.secrets)).all() == []
    ledger = collector.ledger()
    assert ledger["verified"] and [e["status"] for e in ledger["entries"]] == ["committed"]
    assert collector.guarantee()["guarantee"]["unit"] == "participation"
    assert collector.guarantee()["guarantee"]["simulated"] is False


class Crash(BaseException):
    """A process that ends here."""


POINTS = {
    "after the charge": ("tacit_service.modes.joint.JointMode._noise", None),
    "after the noise": (Witness, "note"),
    "after the witness": (Planning, "_commit"),
    "inside the last transaction": (PublicationStore, "put"),
    "before its commit": ("tacit_service.storage.database.set_progress", None),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_never_draws_a_node_again(
    deploy, opened, joint_text, draws, monkeypatch, point
) -> None:
    deployment, rng = deploy(joint_text, users=200, batch=40), np.random.default_rng(2)
    collector = opened(deployment)
    send(collector, trajectories(collector, rng, 40))

    def crash(*args, **kwargs):
        raise Crash

    where, name = POINTS[point]
    with monkeypatch.context() as patch:
        patch.setattr(where, crash) if name is None else patch.setattr(where, name, crash)
        with pytest.raises(Crash):
            PlannerLoop(collector).step()
    assert collector.status().version == 0
    collector.close()
    again = opened(deployment)
    planner = PlannerLoop(again)
    assert not planner.step()  # the dead one may only be slow, for all it knows
    again.clock.now += LEASE_SECONDS
    assert planner.step()
    assert again.status().version == 1
    assert len(draws) == 1
    assert len(again.ledger()["entries"]) == 1


class Restored:
    """A folder with database and key, a witness elsewhere, and a copy made before release 2."""

    def __init__(self, deploy, opened, joint_text: str, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        self.deployment = deploy(
            joint_text, users=200, batch=40, more='witness = "elsewhere/witness"'
        )
        self.rng, self.opened = np.random.default_rng(3), opened
        collector = opened(self.deployment)
        send(collector, trajectories(collector, self.rng, 40))
        self.plan(collector)
        send(collector, trajectories(collector, self.rng, 30))
        collector.close()
        self.kept = [Path(collector.deployment.database.removeprefix("sqlite:///"))]
        self.kept += [self.deployment.key_file, self.deployment.witness]
        self.copies = [path.read_bytes() for path in self.kept]
        self.late = trajectories(opened(self.deployment), self.rng, 10)
        self.published = self.go_on(self.late)

    def turn_back(self, witness: bool = False) -> None:
        for path, content in zip(self.kept, self.copies, strict=True):
            if witness or path != self.deployment.witness:
                path.write_bytes(content)

    def one_more(self) -> None:
        """The release after that, so that what was turned back is two behind."""
        collector = self.opened(self.deployment)
        send(collector, trajectories(collector, self.rng, 40))
        self.plan(collector)
        collector.close()

    @staticmethod
    def plan(collector: Collector) -> None:
        planner = PlannerLoop(collector)
        try:
            assert planner.step()
        finally:
            planner.stop()

    def go_on(self, reports) -> list[bytes]:
        """Send the rest of the batch; what is published then, with its release."""
        collector = self.opened(self.deployment)
        if reports:
            assert send(collector, reports) == ["accepted"] * len(reports)
        self.plan(collector)
        blocks = collector.publications.published(2).release.blocks
        said = [collector.policy(2).body, *(block.tobytes() for block in blocks.values())]
        collector.close()
        return said


def test_a_restored_database_publishes_the_same_again(
    deploy, opened, joint_text, tmp_path: Path, draws
) -> None:
    run = Restored(deploy, opened, joint_text, tmp_path)
    assert len(draws) == 2
    for _ in range(2):
        run.turn_back()
        assert run.go_on(run.late[::-1]) == run.published, "the stored value again"
    key = base64.b64encode(bytes(range(32))).decode()
    run.turn_back()
    run.deployment.key_file.write_text(key + "\n" + run.deployment.key_file.read_text())
    assert run.go_on(run.late) == run.published, "also after the key was rotated"
    assert len(draws) == 2


@pytest.mark.parametrize("behind", [1, 2])
def test_a_restored_database_with_other_reports_publishes_nothing(
    deploy, opened, joint_text, tmp_path: Path, draws, behind
) -> None:
    run = Restored(deploy, opened, joint_text, tmp_path)
    for _ in range(behind - 1):
        run.one_more()
    run.turn_back()
    other = trajectories(opened(run.deployment), run.rng, 10)
    for _ in range(2):
        with pytest.raises(
            ServiceRefused, match="restored from before release 2, .*begin a new task"
        ):
            run.go_on(other)
        other = []
    assert len(draws) == 1 + behind
    assert opened(run.deployment).status().version == 1


@pytest.mark.parametrize("behind", [1, 2])
@pytest.mark.parametrize("content", ["equal", "other"])
def test_a_copy_that_drew_the_same_release_by_itself_is_refused(
    deploy, opened, joint_text, tmp_path: Path, draws, monkeypatch, behind, content
) -> None:
    """Two copies run against one witness: whatever the content, the noise is another one."""
    run = Restored(deploy, opened, joint_text, tmp_path)
    for _ in range(behind - 1):
        run.one_more()
    newest = run.deployment.witness.read_bytes()
    run.turn_back(witness=True)
    note = Witness.note

    def later(witness, *args) -> None:
        run.deployment.witness.write_bytes(newest)
        note(witness, *args)

    monkeypatch.setattr(Witness, "note", later)
    if content == "other":
        run.late = trajectories(opened(run.deployment), run.rng, 10)
    with pytest.raises(ServiceRefused, match="restored from before release 2"):
        run.go_on(run.late)
    assert len(draws) == 2 + behind
    with pytest.raises(ServiceRefused, match="restored from before release 2"):
        opened(run.deployment)


def test_every_release_that_is_out_is_compared_not_only_the_newest(tmp_path: Path) -> None:
    witness = Witness(tmp_path / "witness", "task")
    witness.create()
    marks = [Mark(release, f"digest {release}") for release in range(1, 5)]
    for mark in marks:
        witness.note(mark, b"noise")
    before = (tmp_path / "witness").read_bytes()
    assert witness.check(Mark(0, "")).mark == marks[-1]
    for mark in marks:
        assert sorted(witness.check(mark).drawn) == [1, 2, 3, 4]
        witness.note(mark, b"other noise")
        other = mark._replace(digest="of other content")
        for refuses in (witness.check, lambda other: witness.note(other, b"noise")):
            with pytest.raises(
                ServiceRefused, match=f"restored from before release {mark.releases}"
            ):
                refuses(other)
    assert (tmp_path / "witness").read_bytes() == before, "what is known stays as it was noted"
    with pytest.raises(ServiceRefused, match="is an old copy: it knows 4 releases, the database 6"):
        witness.check(Mark(6, "two ahead"))
    witness.note(Mark(5, "the next one"), b"noise 5")
    assert witness.read().drawn[5].noise == b"noise 5"


def test_a_missing_or_older_witness_is_refused(deploy, opened, joint_text, tmp_path: Path) -> None:
    run = Restored(deploy, opened, joint_text, tmp_path)
    witness = run.deployment.witness
    witness.unlink()
    with pytest.raises(ServiceRefused, match="witness .* is missing"):
        Collector.open(run.deployment)
    start = {"task_id": run.deployment.task_id, "releases": 0, "digest": ""}
    witness.write_text(json.dumps(start))
    with pytest.raises(ServiceRefused, match="is an old copy"):
        Collector.open(run.deployment)
    run.turn_back()
    before = start | {"releases": 2, "digest": "as version 0.2 wrote it"}
    witness.write_text(json.dumps(before))
    with pytest.raises(ServiceRefused, match="restored from before release 2"):
        Collector.open(run.deployment)


def test_a_witness_that_can_be_restored_with_the_database_is_refused_or_told(
    deploy, joint_text, monkeypatch
) -> None:
    silent = joint_text.replace("witness_on_same_disk = true\n", "")
    with pytest.raises(InvalidInput, match="would lie on the disk of the database.*another disk"):
        deploy(silent)
    assert "noise can be drawn twice" in deploy(joint_text).restoring
    monkeypatch.setattr(
        "tacit_service.config.deployment._disk", lambda folder: 7 if folder.name == "other" else 1
    )
    apart = deploy(silent, more='witness = "other/witness"')
    assert "publishes what it published before or nothing" in apart.restoring


def test_what_the_witness_keeps_opens_for_the_same_content_alone(
    deploy, opened, joint_text, tmp_path: Path
) -> None:
    deployment = Restored(deploy, opened, joint_text, tmp_path).deployment
    drawn = Witness(deployment.witness, deployment.task_id).read().drawn
    assert sorted(drawn) == [1, 2]
    vault = Vault(deployment.key_file, deployment.task_id)
    sealed = vault.seal_for("noise:1", b"exact sums", b"noise")
    assert vault.open_for("noise:1", b"exact sums", sealed) == b"noise"
    assert vault.open_for("noise:1", b"other sums", sealed) is None
    assert vault.open_for("noise:2", b"exact sums", sealed) is None
    assert vault.open_for("noise:1", b"", drawn[1].noise) is None


def test_a_database_restored_under_a_running_planner_is_noticed(
    deploy, opened, joint_text, tmp_path: Path
) -> None:
    deployment, rng = deploy(joint_text, users=200, batch=40), np.random.default_rng(3)
    collector = opened(deployment)
    send(collector, trajectories(collector, rng, 40))
    mark = {"task_id": deployment.task_id, "releases": 1, "digest": "of other noise"}
    deployment.witness.write_text(json.dumps(mark))
    with pytest.raises(ServiceRefused, match="restored"):
        PlannerLoop(collector).step()


def test_whatever_has_the_right_length_is_accepted_and_clipped(deploy, opened, joint_text) -> None:
    collector = opened(deploy(joint_text, users=200, batch=40))
    H = collector.deployment.task.horizon
    rng = np.random.default_rng(4)
    (honest,) = trajectories(collector, rng, 1)
    noise = [rng.bytes(16 * H + 4) for _ in range(30)]
    noise += [b"\xff" * (16 * H + 4), b"\x7f" * (16 * H + 4), b"\x00" * (16 * H + 4)]
    reports = [
        replace(honest, id=rng.bytes(16).hex(), message=base64.b64encode(raw).decode())
        for raw in noise
    ]
    assert send(collector, reports) == ["accepted"] * 33
    short = replace(honest, message=base64.b64encode(b"1234").decode())
    assert send(collector, [short]) == ["invalid"]
    bound = collector.deployment.bound
    contribution = np.zeros(bound.statistic.layout.size, dtype=np.int64)
    publication = collector.publications.history()[0].publication
    for report in reports:
        trajectory = messages.unpack_trajectory(report.message, H)
        bound.statistic.contribute(trajectory, publication, 0, contribution)
        natural = np.linalg.norm(contribution * bound.statistic.layout.units)
        assert natural <= 10 * H  # finite, and nothing near what garbage could be


def test_tasks_that_differ_in_what_one_report_says_differ_in_nothing_but_the_noise(
    deploy, opened, joint_text, caplog
) -> None:
    """Answers, status, log lines and the size of all that is stored, before and after a release."""
    seen = []
    for said in (None, b"\xff", b"\x7f", b"\x00"):
        collector, shown = opened(deploy(joint_text, users=200, batch=40)), []
        reports = trajectories(collector, np.random.default_rng(4), 40)
        if said:
            raw = said * (16 * collector.deployment.task.horizon + 4)
            reports[3] = replace(reports[3], message=base64.b64encode(raw).decode())
        caplog.clear()
        shown.append(collector.upload(collector.deployment.task_id, reports, None))
        for _ in range(2):
            with collector._store.read() as connection:
                secrets = connection.execute(sa.select(schema.secrets)).all()
            sizes = [[x if isinstance(x, str) else len(x) for x in row] for row in secrets]
            lines = [record.getMessage() for record in caplog.records]
            shown += [sorted(sizes), lines, repr(collector.status())]
            PlannerLoop(collector).step()
        seen.append(shown)
    for one in seen:
        assert one == seen[0]


def test_the_noise_in_a_release_is_what_the_guarantee_was_computed_from(
    deploy, opened, joint_text
) -> None:
    """Squared noise in the counter's first row, 150 cells: half the noise, or none, fails.

    An honest service fails with probability below 1e-9 (secure noise takes no seed).
    """
    text = joint_text.replace("states = 3", "states = 6").replace("actions = 2", "actions = 3")
    collector = opened(deploy(text, users=200, batch=40))
    statistic, H = collector.deployment.bound.statistic, collector.deployment.task.horizon
    reports = trajectories(collector, np.random.default_rng(7), 40)
    exact = np.zeros(statistic.layout.size, dtype=np.int64)
    one, publication = exact.copy(), collector.publications.published(0).publication
    for report in reports:
        trajectory = messages.unpack_trajectory(report.message, H)
        statistic.contribute(trajectory, publication, 0, one)
        exact += one
    send(collector, reports)
    assert PlannerLoop(collector).step()
    planning, privatizer = collector.planning, collector.deployment.bound.privatizer
    with planning.store.read() as connection:
        secret = planning.mode.load(connection)
    shown = privatizer.audit_view(secret, collector.publications.published(1).release)
    total = float(np.sum((shown - exact * statistic.layout.units) ** 2)) / privatizer.noise_std**2
    cells = len(shown)
    assert cells == 150
    low, high = chi2.ppf([5e-10, 1 - 5e-10], cells)
    assert low < total < high
    assert chi2.cdf(4 * low, cells) > 0.999  # with half the noise the total falls below


def test_no_trajectory_reaches_the_files(deploy, opened, joint_text) -> None:
    deployment = deploy(joint_text, users=200, batch=40)
    collector = opened(deployment)
    H = deployment.task.horizon
    canary = np.frombuffer(b"canaryXX" * H, dtype="<f8")
    raw = np.zeros(2 * H + 1, "<i4").tobytes() + canary.tobytes()
    (honest,) = trajectories(collector, np.random.default_rng(1), 1)
    report = replace(honest, id="cd" * 16, message=base64.b64encode(raw).decode())
    assert send(collector, [report]) == ["accepted"]
    assert "canary" not in repr(report)
    collector.close()
    files = [path for path in deployment.folder.iterdir() if path.is_file()]
    assert len(files) >= 2
    for path in files:
        content = path.read_bytes()
        assert b"canaryXX" not in content and report.message.encode()[-40:] not in content


def test_secrets_are_encrypted_and_need_their_key(deploy, opened, joint_text) -> None:
    deployment, rng = deploy(joint_text, users=200, batch=40), np.random.default_rng(5)
    collector = opened(deployment)
    send(collector, trajectories(collector, rng, 10))
    collector.close()
    assert deployment.key_file.stat().st_mode & 0o777 == 0o600
    old = deployment.key_file.read_text()
    new = base64.b64encode(bytes(range(32))).decode() + "\n"
    deployment.key_file.write_text(new + old)  # rotation: the first encrypts, all decrypt
    collector = opened(deployment)
    assert send(collector, trajectories(collector, rng, 10)) == ["accepted"] * 10
    collector.close()
    deployment.key_file.write_text(old)
    with pytest.raises(ServiceRefused, match="put back the key file"):
        send(opened(deployment), trajectories(collector, rng, 1))
    deployment.key_file.chmod(0o644)
    with pytest.raises(ServiceRefused, match="chmod 600"):
        Collector.open(deployment)


def test_released_sums_and_their_noise_are_deleted(deploy, opened, joint_text) -> None:
    deployment, rng = deploy(joint_text, users=200, batch=40), np.random.default_rng(6)
    collector = opened(deployment)
    send(collector, trajectories(collector, rng, 50))
    assert PlannerLoop(collector).step()
    file = deployment.database.removeprefix("sqlite:///")
    with sqlite3.connect(file) as connection:
        names = {row[0] for row in connection.execute("SELECT name FROM secrets")}
    assert names == {"state", "batch:1"}
    assert not Path(file + "-wal").exists() or Path(file + "-wal").stat().st_size == 0
