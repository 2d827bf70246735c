"""No trajectory is left anywhere: not in database files, not in their logs, not in ours."""

import struct
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest

from tacit import wire
from tacit.policy import TabularPolicy
from tacit.publication import Publication
from tacit.service.collector import Collector
from tacit.service.deployment import Deployment
from tacit.trajectory import Trajectory

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
    message = wire.pack_trajectory(life, 2)
    statistic = deployment.bound.statistic
    out = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.contribute(life, Publication(0, TabularPolicy(np.zeros((2, 3), int))), 0, out)
    steps = int(np.abs(statistic.layout.views(out)["reward"]).max())
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
        message = wire.pack_trajectory(life, 2)
        reports = [{"id": f"{i:032x}", "version": 0, "message": message} for i in range(77, 80)]
        answer = httpx.post(
            f"{service.address}/v1/reports",
            json={"task_id": deployment.task_id, "reports": reports},
            headers={"Authorization": f"Bearer {token}"},
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
