"""No trajectory is left anywhere: not in database files, not in their logs, not in ours."""

import struct
import sys
from contextlib import closing
from pathlib import Path

import httpx
import numpy as np
import pytest

from patience import PATIENCE
from tacit.policies.tabular import TabularPolicy
from tacit.publication import Publication
from tacit.trajectory import Trajectory, together
from tacit.wire import messages
from tacit.wire.report_rules import rules_hash
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.modes.memory import KEY, PREFIX
from tacit_service.storage.backup import backup
from tacit_service.storage.database import Store
from tacit_service.storage.vault import Vault

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "service"))
from running import Postgres, Service, free_port  # noqa: E402

REWARD = 0.7316893412097531
"""Eight bytes that no other number here has."""

DEPLOYMENT = """
[task]
name = "canary"
states = 3
actions = 2
horizon = 2
homogeneous = true

[agent]
name = "tacit-joint"
epsilon = 1.0
first = 2

[population]
users = 100
tokens = "shared"

[updates]
minimum_batch = 2

[storage]
witness_on_same_disk = true
database = "{database}"

[server]
port = {port}
"""


def traces(deployment: Deployment, life: Trajectory) -> dict[str, bytes]:
    """Ways in which a trajectory, or the contribution made of it, could show."""
    message = messages.pack_trajectory(life, 2)
    statistic = deployment.bound.statistic
    out = np.zeros(statistic.layout.size, dtype=np.int64)
    policy = TabularPolicy(np.zeros((2, 3), int))
    asked = statistic.worst_contexts()["pairs that are asked for"]
    statistic.contribute(life, Publication(0, policy, asked), 0, out)
    gains = np.abs(statistic.layout.views(out)["gains"])
    steps = int(gains[gains > 0].min())  # of the one reward that is neither 0 nor 1
    return {
        "the upload as sent": message.encode(),
        "a part of it": message.encode()[-24:],
        "a reward in binary": struct.pack("<d", REWARD),
        "a reward in binary, big endian": struct.pack(">d", REWARD),
        "a reward in words": str(REWARD).encode()[:12],
        "a contribution in grid steps": struct.pack("<q", steps),
        "two of them": struct.pack("<q", 2 * steps),
        "a contribution, whole": out.astype("<i8").tobytes(),
    }


def found(folder: Path, needle: bytes) -> list[str]:
    """Files below a folder that contain some bytes."""
    return [
        path.name for path in folder.rglob("*") if path.is_file() and needle in path.read_bytes()
    ]


RETURNING = (
    DEPLOYMENT.replace("states = 3", "states = 7")
    .replace("horizon = 2", "horizon = 9")
    .replace('tokens = "shared"', 'participations = "any"\nrenews = "1000d"')
)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_what_is_remembered_of_people_is_nowhere_in_clear(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Not in the database, its log or a backup, not in ours, and not on any page."""
    folder = tmp_path_factory.mktemp("canary")
    folder.chmod(0o755)
    server = Postgres(folder / "postgres") if kind == "postgres" else None
    port, path = free_port(), folder / "canary.toml"
    url = server.url if server else "sqlite:///canary.db"
    path.write_text(RETURNING.format(database=url, port=port))
    deployment = Deployment.load(path)
    with Collector.open(deployment) as collector:
        token, other = collector.tokens.issue("device", 2, "canary")
        (operator,) = collector.tokens.issue("operator")
        publication = collector.publications.publication(0)
    actions = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1])
    life = Trajectory([0, 1, 2, 3, 4, 5, 6, 0, 1, 2], actions, np.full(9, 0.25))
    memory = deployment.bound.statistic.memory(1)
    row = np.zeros(deployment.bound.statistic.layout.size, dtype=np.int64)
    nobody = np.zeros(1, dtype=np.int64)
    statistic = deployment.bound.statistic
    statistic.add_people(together([life]), publication, nobody, memory.of(nobody), row)
    assert memory.spent[0] > 4
    service = Service(path, port)
    service.start()
    pages = b""
    try:
        message = messages.pack_trajectory(life, 9)
        report = {"version": 0, "message": message, "rules": rules_hash(deployment.rules)}
        for k, who in enumerate((token, token, other)):
            answer = httpx.post(
                f"{service.address}/v1/reports",
                json={"task_id": deployment.task_id, "reports": [{"id": f"{k:032x}", **report}]},
                headers={"Authorization": f"Bearer {who}"},
                timeout=PATIENCE,
            )
            assert answer.json()["outcomes"][0]["outcome"] == "accepted"
        if server is None:  # elsewhere it is what pg_dump writes
            backup(deployment, folder / "copy", key=False)
        with closing(Store(deployment.database)) as store, store.read() as connection:
            names = Vault.names(connection, PREFIX)
            stored = Vault(deployment.key_file, deployment.task_id).get_many(connection, names)
        for place in ("/", "/v1/dashboard", "/v1/task", "/v1/guarantee", "/v1/ledger", "/metrics"):
            headers = {"Authorization": f"Bearer {operator}"}
            page = httpx.get(f"{service.address}{place}", headers=headers, timeout=PATIENCE)
            assert page.status_code == 200, place
            pages += page.content
    finally:
        service.kill()
        if server is not None:
            server.stop()
    people = {name: value for name, value in stored.items() if name != KEY}
    assert len(people) == 2, "one value for a person, however often they come"
    clear = int(memory.spent[0]).to_bytes(8, "little") + memory.taught.tobytes()
    assert set(people.values()) == {clear}, "what is looked for is what was remembered"
    (folder / "pages").write_bytes(pages)
    needles = {
        "a memory": clear,
        "what was taught": memory.taught.tobytes(),
        "the key of pseudonyms": stored[KEY],
        "a token": token.encode(),
        "an upload": message.encode(),
    }
    for name, needle in needles.items():
        assert found(folder, needle) == [], name
    for name in people:
        assert name.rpartition(":")[2].encode() not in pages
        assert not any(name.rpartition(":")[2] in file.read_text() for file in folder.glob("*.log"))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_trajectory_is_left_anywhere(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("canary")
    folder.chmod(0o755)
    server = Postgres(folder / "postgres") if kind == "postgres" else None
    port = free_port()
    path = folder / "canary.toml"
    url = server.url if server else "sqlite:///canary.db"
    path.write_text(DEPLOYMENT.format(database=url, port=port))
    deployment = Deployment.load(path)
    with Collector.open(deployment) as collector:
        (token,) = collector.tokens.issue("device", 1, "canary")
    service = Service(path, port)
    service.start()
    life = Trajectory([1, 2, 0], [1, 0], [REWARD, 0.0])
    try:
        message = messages.pack_trajectory(life, 2)
        report = {"version": 0, "message": message, "rules": rules_hash(deployment.rules)}
        reports = [{"id": f"{i:032x}", **report} for i in range(77, 80)]
        answer = httpx.post(
            f"{service.address}/v1/reports",
            json={"task_id": deployment.task_id, "reports": reports},
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE,
        )
        outcomes = [outcome["outcome"] for outcome in answer.json()["outcomes"]]
        assert outcomes == ["accepted"] * 3  # one batch of two is released, one report waits
    finally:
        service.kill()  # nothing gets a chance to tidy up
        if server is not None:
            server.stop()
    assert found(folder, (77).to_bytes(16, "big")), "what is stored would have been found"
    for name, needle in {**traces(deployment, life), "the token": token.encode()}.items():
        assert found(folder, needle) == [], name
