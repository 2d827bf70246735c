"""The service's recorded fleet: a collector in this process, reports and noise from fixed seeds.

Devices act on what the collector publishes and report with simulated noise, some of them late and
under an older version; the root of all plans is fixed. The curator of the joint model would draw
secure noise, which cannot be recorded, so its draws are replaced by seeded ones. Which step a
device of ``tacit-local`` reports follows from the id of the task, hence from the agent's
parameters: one more of them is another task, with other reports.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from golden.digests import array_bytes, digest, json_digest, named_bytes, publication_bytes
from service.devices import local_reports, trajectories
from tacit.privacy.noise import GridLaw, SecureNoise, SimulatedNoise
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.responses import Published

ROOT = 20240607
USERS, BATCH, UPLOAD = 150, 30, 25

FLEETS: dict[str, dict[str, Any]] = {
    "tacit-local posterior": {"name": "tacit-local", "epsilon": 4.0},
    "tacit-local optimistic": {"name": "tacit-local", "epsilon": 1.0, "exploration": "optimistic"},
    "ldp-obi laplace": {"name": "ldp-obi", "epsilon": 20.0, "calibration": "tight"},
    "ldp-obi gaussian": {
        "name": "ldp-obi", "epsilon": 20.0, "delta": 1e-5, "randomizer": "gaussian",
        "calibration": "tight"
    },
    "ldp-obi randomized-response": {
        "name": "ldp-obi", "epsilon": 20.0, "randomizer": "randomized-response",
        "calibration": "tight"
    },
    "ldp-psrl": {"name": "ldp-psrl", "epsilon": 5.0, "calibration": "tight"},
    **{
        name: {"name": name, "epsilon": 50.0, "calibration": "tight"}
        for name in ("private-linopt-vi", "private-linopt-po")
    },
    "tacit-joint": {"name": "tacit-joint", "epsilon": 4.0, "first": 30, "growth": 1.5},
    **{
        f"tacit-joint {counter}": {
            "name": "tacit-joint", "epsilon": 4.0, "first": 30, "growth": 1.5, "counter": counter
        }
        for counter in ("tree", "honaker", "toeplitz", "blt")
    },
}  # fmt: skip


def deployment(agent: dict[str, Any], folder: Path, more: str = "") -> Deployment:
    """The deployment of one fleet."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in agent.items()]
    alike = json.dumps("counter" not in agent)  # counters are for tables with one law per stage
    text = "\n".join(
        [
            '[task]\nname = "golden"\nstates = 3\nactions = 2\nhorizon = 4',
            f"homogeneous = {alike}",
            "[agent]",
            *lines,
            f'[population]\nusers = {USERS}\ntokens = "shared"',
            f"[updates]\nminimum_batch = {BATCH}\naccepted_versions = 2",
            more or "[storage]\nwitness_on_same_disk = true",
        ]
    )
    return Deployment.parse(text, folder / "deployment.toml")


@contextmanager
def seeded() -> Iterator[None]:
    """The root of plans is ``ROOT``, and draws of secure noise come from a generator."""
    simulated = SimulatedNoise(np.random.default_rng(ROOT + 1))

    def fill(self: SecureNoise, law: GridLaw, out: Any) -> None:
        simulated.fill(law, out)

    with patch("secrets.randbits", return_value=ROOT), patch.object(SecureNoise, "fill", fill):
        yield


def measure_fleet(name: str) -> dict[str, str]:
    """Digests of what devices sent and of everything that was published."""
    rng, sent = np.random.default_rng(ROOT), []
    with tempfile.TemporaryDirectory(prefix="tacit-golden-") as folder, seeded():
        deployed = deployment(FLEETS[name], Path(folder))
        make = local_reports if deployed.model == "local" else trajectories
        for _ in range(USERS // UPLOAD):  # every upload meets a collector that has just started
            with Collector.open(deployed, clock=lambda: 1_000_000.0) as collector:
                reports = make(collector, rng, UPLOAD)
                answer = collector.upload(deployed.task_id, reports, None)
                assert {outcome.outcome for outcome in answer.outcomes} == {"accepted"}
                sent += [f"{r.id} {r.version} {r.message}".encode() for r in reports]
                while collector.planning.step():
                    pass
                *history, last = collector.publications.history()
                bodies = [collector.policy(published.version).body for published in history]
                finished = collector.status().finished
        assert finished and len(history) > 2 and last.users == USERS
    return {
        "reports": digest(sent),
        "releases": digest(map(_release, history)),
        "publications": digest(publication_bytes(p.publication) for p in history),
        "policy bodies": json_digest([_policy(body) for body in bodies]),
        "final": digest([_release(last), publication_bytes(last.publication)]),
    }


def _release(published: Published) -> bytes:
    release = published.release
    head = f"{published.version} {published.users} {release.users} {release.source} ".encode()
    noise = named_bytes(release.variances)
    return head + named_bytes(release.blocks) + noise + array_bytes([published.published_at])


def _policy(body: bytes) -> Any:
    """What is said of the policy itself; around it are words, which may be mended."""
    said = json.loads(body)
    return {name: said[name] for name in ("version", "policy", "context")}
