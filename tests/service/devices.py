"""Honest devices of the local model, for tests."""

import json
from dataclasses import asdict

import numpy as np

from tacit.privacy.noise import SimulatedNoise
from tacit.publication import Publication
from tacit.trajectory import Trajectory
from tacit.wire import documents, messages
from tacit.wire.report_rules import rules_hash
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.responses import IncomingReport


def sent(report: IncomingReport) -> dict[str, object]:
    """A report as it stands in an upload."""
    return {name: value for name, value in asdict(report).items() if value is not None}


def local_reports(
    collector: Collector, rng: np.random.Generator, count: int
) -> list[IncomingReport]:
    """Reports that honest devices could have sent under the newest version."""
    deployment = collector.deployment
    body = json.loads(collector.policy().body)
    publication = documents.publication_from_json(body, deployment.task, deployment.task_id)
    return [report_under(deployment, publication, rng) for _ in range(count)]


def report_under(
    deployment: Deployment,
    publication: Publication,
    rng: np.random.Generator,
    identity: str | None = None,
) -> IncomingReport:
    """The same under a given publication; noise is simulated, which the wire cannot tell."""
    H, sizes = deployment.task.horizon, deployment.task.sizes
    identity = identity or rng.bytes(16).hex()
    coin = messages.coin(deployment.task_id, identity)
    trajectory = Trajectory(
        rng.integers(0, sizes["states"], H + 1),
        rng.integers(0, sizes["actions"], H),
        rng.random(H),
    )
    bound = deployment.bound
    contribution = np.zeros(bound.statistic.layout.size, dtype=np.int64)
    bound.statistic.contribute(trajectory, publication, coin, contribution)
    message = messages.device_message(bound, contribution, publication, coin, SimulatedNoise(rng))
    return IncomingReport(
        identity,
        publication.version,
        messages.pack_message(message),
        rules=rules_hash(deployment.rules),
    )


def trajectories(
    collector: Collector, rng: np.random.Generator, count: int
) -> list[IncomingReport]:
    """Raw trajectories under the newest version, for the curator of the joint model."""
    task, version = collector.deployment.task, collector.policy().version
    H = task.horizon
    return [
        IncomingReport(
            rng.bytes(16).hex(),
            version,
            messages.pack_trajectory(
                Trajectory(
                    rng.integers(0, task.sizes["states"], H + 1),
                    rng.integers(0, task.sizes["actions"], H),
                    rng.random(H),
                ),
                H,
            ),
            rules=rules_hash(collector.rules),
        )
        for _ in range(count)
    ]
