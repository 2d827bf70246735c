"""Every policy worked out again from kept reports, with the simulator's learning step.

The planner adds reports up in bulk and goes on from saved sums. Here one learner starts from
nothing and absorbs report after report, each batch backwards, as a simulation would: sums are
integers, so neither the order nor the way may change a single bit of what was published.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from tacit.errors import InvalidInput
from tacit.learner import Learner
from tacit.privacy.noise import ZeroNoise
from tacit.streams import planner_streams
from tacit.wire import documents, strict_json
from tacit_service.planning.step import Planning
from tacit_service.storage import database as db
from tacit_service.storage import ledger, packing


@dataclass(frozen=True)
class Verdict:
    """What a verification found.

    Attributes:
        sound: everything that was published follows from what was kept.
        problem: what does not, as a sentence.
        versions: how many publications were compared.
        reports: how many reports were absorbed again.
    """

    sound: bool
    problem: str
    versions: int
    reports: int

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))

    def __str__(self) -> str:
        if not self.sound:
            return f"NOT SOUND: {self.problem}"
        return (
            f"Sound: {self.versions} policies follow bit for bit from {self.reports} kept reports, "
            "and the ledger's chain is whole."
        )


def verify(planning: Planning) -> Verdict:
    """Compare every publication with what the simulator's step makes of the kept reports."""
    if not planning.deployment.settings.storage.keep_reports:
        raise InvalidInput(
            "nothing can be worked out again, because reports are deleted once they are absorbed; "
            "set keep_reports = true in [storage] before the first report arrives"
        )
    learner = Learner(planning.deployment.bound, ZeroNoise(), people=1)
    with planning.store.read() as connection:
        newest = db.progress(connection).version
        for version in range(newest + 1):
            problem = _absorb_batch(learner, planning, connection, version) if version else ""
            problem = problem or _difference(learner, planning, version)
            if problem:
                return Verdict(False, problem, version, learner.served)
        problem = planning.mode.overcounted(connection)
    chain = ledger.statement(planning.store)
    sound = not problem and chain["verified"]
    return Verdict(sound, problem or chain["problem"], newest + 1, learner.served)


def _absorb_batch(
    learner: Learner, planning: Planning, connection: sa.Connection, version: int
) -> str:
    """Absorb what a version was learned from; what of it is missing, as a sentence."""
    start, end = planning.boundaries[version - 1], planning.boundaries[version]
    batch = list(planning.mode.reports(connection, start, end))
    if missing := end - start - len(batch):
        return f"{missing} reports of the batch before version {version} are missing"
    planning.mode.renew(learner, connection, start)
    for report, named in reversed(batch):
        learner.absorb(report, named)
    planning.mode.restore_noise(learner, connection, version)
    return ""


def _difference(learner: Learner, planning: Planning, version: int) -> str:
    """What is different about a version, as a sentence; nothing if nothing is."""
    stored = planning.publications.published(version)
    publication = learner.publish(planner_streams(planning.root, version))
    assert learner.release is not None
    release = packing.release_from_bytes(packing.release_to_bytes(learner.release))
    same = stored.users == learner.served and all(
        release.blocks[name].tobytes() == block.tobytes()
        for name, block in stored.release.blocks.items()
    )
    if not same:
        return f"the release of version {version} does not follow from the kept reports"
    sent = json.loads(planning.publications.entry(version)[1].body)
    previous = planning.publications.before(version) if "previous" in sent else None
    made = documents.publication_to_json(publication, planning.deployment.task_id, previous)
    spell = strict_json.canonical
    if any(spell(sent[name]) != spell(value) for name, value in made.items()):
        return f"the policy of version {version} does not follow from its release"
    return ""
