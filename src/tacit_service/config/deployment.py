"""One TOML file describes a deployment: the task, the agent, the population, and where it runs."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from tacit.agents.base import Agent
from tacit.agents.catalogue import agents
from tacit.config import overridden, read_text, read_toml
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.privacy.guarantee import Guarantee
from tacit.task.participation import Participation, Teaches
from tacit.task.task import Task
from tacit.util import durations
from tacit.wire import documents, messages
from tacit.wire.report_rules import rules_of
from tacit_service.config.sections import SECTIONS, Settings, UpdatesSection, read_settings
from tacit_service.config.serving import Model, bind, served_model
from tacit_service.config.task import labels_of, read_task, rule_of

Unit = Literal["user", "participation"]
Ids = Literal["token", "chosen"]
"""Ids of reports follow from the device's token, or senders choose them."""

_COUNTED: dict[Teaches, str] = {
    "first": "the first time{} is reported, and at the others no report is made",
    "lifetime": "what they teach in all of them{} together is bounded as if it were one",
    "every": "every time is counted, and all are paid for together",
}

ANY_NUMBER = 2**62
"""Of reports: more than a database counts."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """A checked deployment file. Everything in it is public but the content of the key file.

    Attributes:
        settings: the file itself, section by section.
        folder: what relative paths in it are relative to.
        stem: name of the file without its ending; log lines and metrics call the task so.
        task: what is learned, as the learner is told.
        agent: the recipe.
        bound: the recipe fitted to the task, minimum batch included.
        accepted_versions: how many of the newest policy versions reports may name; None where the
            task has a duration, so that time decides.
        delay: most seconds for which a device holds its report after the episode, at random.
        grace: seconds for which a report is taken after the last moment it can be due.
        database: SQLAlchemy URL.
        key_file: keys of the encrypted table (joint only).
        witness: file that notices a database restored from before a release (joint only).
        form: how the terms are spelt when they are hashed: what the database began with; None
            is the newest.
    """

    settings: Settings
    folder: Path
    stem: str
    task: Task
    agent: Agent
    bound: BoundAgent
    accepted_versions: int | None
    delay: float
    grace: float
    database: str
    key_file: Path
    witness: Path
    form: int | None = None

    @classmethod
    def load(cls, path: str | Path, *, stored: bool = True) -> Deployment:
        """Read and check a file; ``TACIT_<SECTION>_<KEY>`` of the environment overrides it.

        ``{task}`` in such a value is the file's name without its ending. Whoever only wants to know
        what it says, and keeps nothing, says that nothing is ``stored``: no witness is needed then.
        """
        path = Path(path)
        absent = f"there is no file {path}; `tacit serve {path} --init` writes one to start from"
        return cls.parse(read_text(path, absent), path, os.environ, stored=stored)

    @classmethod
    def parse(
        cls,
        text: str | dict[str, Any],
        path: str | Path,
        environ: Mapping[str, str] | None = None,
        *,
        stored: bool = True,
    ) -> Deployment:
        """The same from text, or from what it holds; paths are relative to that of ``path``."""
        path, used = Path(path), []
        try:
            data = read_toml(text) if isinstance(text, str) else text
            used = overridden(data, SECTIONS, environ or {}, path.stem)
            return cls._build(read_settings(data), path, stored)
        except InvalidInput as error:
            source = " with ".join((path.name, *used[:1])) + (" and others" if used[1:] else "")
            raise InvalidInput(f"{source}: {error}") from None

    @classmethod
    def _build(cls, settings: Settings, path: Path, stored: bool = True) -> Deployment:
        """What follows from several settings together, or from where the file lies."""
        folder, stem, storage = path.parent, path.stem, settings.storage
        task, rule = read_task(settings, folder), rule_of(settings)
        agent, bound = bind(settings.agent, task, rule, settings.updates.minimum_batch)
        if agents.entry(agent.name).package:
            raise InvalidInput(f"{agent.name} is not one of tacit's own, and devices run no other")
        opens, closes = settings.window.opens, settings.window.closes
        if opens is not None and closes is not None and opens >= closes:
            raise InvalidInput("[window] closes before it opens; swap the two times")
        deployment = cls(
            settings,
            folder,
            stem,
            bound.task,
            agent,
            bound,
            *_acceptance(settings.updates, task.duration),
            database=_database(storage.database or f"sqlite:///{stem}.db", folder),
            key_file=folder / (storage.key_file or f"{stem}.key"),
            witness=folder / (storage.witness or f"{stem}.witness"),
        )
        if stored and deployment.same_disk and not storage.witness_on_same_disk:
            raise InvalidInput(
                f"the witness {deployment.witness.name} would lie on the disk of the database: "
                "whoever restores that disk turns back both, and noise is drawn twice unnoticed. "
                "Name a file on another disk as witness in [storage], or accept this openly with "
                "witness_on_same_disk = true (devices, tacit admin check and the dashboard say so)"
            )
        return deployment

    @staticmethod
    def example() -> str:
        """A commented file that runs as it is."""
        return resources.files("tacit_service.config").joinpath("example.toml").read_text("utf-8")

    @property
    def name(self) -> str:
        """What the operator calls the task."""
        return self.settings.task.name

    @property
    def labels(self) -> dict[str, list[str] | None]:
        """Names of the states and of the actions, None where they have none."""
        return labels_of(self.settings.task)

    @cached_property
    def model(self) -> Model:
        """Who is trusted, which follows from the agent."""
        return served_model(self.bound, self.agent)

    @property
    def unit(self) -> Unit:
        """Whose data the guarantee is about."""
        return "user" if self.settings.population.tokens == "per-device" else "participation"

    @property
    def ids(self) -> Ids:
        """Who decides the ids of reports where they decide the question: best that nobody can.

        Where a person reports once in a period, the id says of which: there is one for each.
        """
        asks = self.model == "local" and messages.local_privatizer(self.bound).public_step
        assigned = asks or self.ticketed or self.by_period
        return "token" if assigned and self.unit == "user" else "chosen"

    @property
    def by_period(self) -> bool:
        """Whether the number that an id is made of is that of a period: one report in each."""
        rule = self.task.rule
        return self.model == "local" and rule is not None and rule.teaches == "first"

    @property
    def returning(self) -> str:
        """How often one person may take part, and what of it is counted, in a sentence."""
        if self.unit == "participation":
            return "Nobody counts how often a person takes part"
        rule = self.task.rule or Participation(self.task.participations)
        sentence = f"One person may take part {rule.in_words()}"
        if self.task.rule is None and rule.times == 1:
            return sentence
        counted = _COUNTED[rule.teaches or "every"].format(" of a period" if rule.period else "")
        return f"{sentence}; {counted}"

    @property
    def most_reports(self) -> int:
        """Reports that are counted of one token, in a period if budgets are renewed."""
        rule = self.task.rule
        if rule is None or rule.teaches == "every":
            return self.task.participations
        if rule.teaches == "first":  # a collector's ids see to it in every period
            return ANY_NUMBER if rule.period else 1
        return ANY_NUMBER if rule.times is None else rule.times

    @property
    def ticketed(self) -> bool:
        """Whether a participation is counted when it begins: people of a search are assigned."""
        return self.task.family == "episodic"

    def coin(self, report_id: str, number: int) -> int:
        """The public coin of a report: its ticket's number, or what follows from its id."""
        return number if self.ticketed else messages.coin(self.task_id, report_id)

    @property
    def reward_range(self) -> tuple[float, float]:
        """What devices clip to: rewards, or of a search the return of an episode."""
        search = self.settings.search
        return self.settings.task.reward_range if search is None else search.returns

    @property
    def sending(self) -> str:
        """What the time of a report tells, in a sentence."""
        return durations.when_sent(self.task.duration, self.delay)

    @property
    def taking(self) -> str:
        """How long a report is taken, in a sentence."""
        if self.ticketed:
            return durations.how_long_waited(self.task.duration, self.delay, self.grace)
        return durations.how_long_taken(
            self.task.duration, self.delay, self.grace, self.accepted_versions
        )

    @cached_property
    def same_disk(self) -> bool:
        """Whether database and witness can be restored together (joint; PostgreSQL: not known)."""
        if self.model == "local" or not self.database.startswith("sqlite"):
            return False
        database = Path(self.database.removeprefix("sqlite:///"))
        return _disk(database.parent) == _disk(self.witness.parent)

    @property
    def restoring(self) -> str:
        """What a restored copy of the database can do to the guarantee, in a sentence."""
        if self.model == "local":
            return "Noise is drawn on devices: restoring a copy of the database redraws nothing"
        if self.same_disk:
            return (
                "The witness lies on the disk of the database: if both are restored together from "
                "a copy, noise can be drawn twice for the same release, and the guarantee is lost"
            )
        return (
            "A database restored from a copy publishes what it published before or nothing, as "
            "long as the witness is not restored with it"
        )

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the agent's noise guarantees here: real noise, and the unit that tokens enforce."""
        return dataclasses.replace(self.bound.guarantee, unit=self.unit, simulated=False)

    @cached_property
    def terms(self) -> dict[str, Any]:
        """What a device agrees to, as JSON: one of them changed is another task."""
        return {
            "name": self.name,
            "task": documents.task_to_json(self.task),
            "agent": {"name": self.agent.name, "parameters": self.agent.terms()},
            "reward_range": list(self.reward_range),
            "absorbing_state": self.settings.task.absorbing_state,
            "unit": self.unit,
        }

    @cached_property
    def fixed(self) -> dict[str, str]:
        """Every term of the file as JSON, by key and section: fixed once the database is made.

        Where things lie and where it listens may change; what people and devices were told may not.
        """
        sections = dataclasses.asdict(self.settings)
        del sections["server"], sections["fleet"]
        sections["storage"] = {"keep_reports": self.settings.storage.keep_reports}
        return {
            f"{key} in [{section}]": json.dumps(value, sort_keys=True)
            for section, keys in sections.items()
            for key, value in (keys or {}).items()
            if key != "pace"  # a guess of the operator, which may be corrected
        }

    @cached_property
    def task_id(self) -> str:
        """Digest of the terms."""
        return documents.task_id(self.terms, self.form)

    @cached_property
    def rules(self) -> dict[str, Any]:
        """How devices make their reports, as this version and this machine work it out."""
        return rules_of(self.bound)

    def as_recorded(self, task_id: str | None) -> Deployment:
        """The same under the id that its database began with, if terms were spelt so once.

        Before there were rules every participation was counted in full, and where a file left open
        the calibration it was "tight": a task that was begun so goes on so.
        """
        for meant in (self, self._counting_all(), self._tight(), self._counting_all()._tight()):
            for form in documents.terms_forms(meant.terms):
                if documents.task_id(meant.terms, form) == task_id:
                    return dataclasses.replace(meant, form=form)
        return self

    def _counting_all(self) -> Deployment:
        """What the same file meant before there were rules of participation."""
        own = self.settings.population
        more = own.teaches or own.apart or own.renews or own.participations is None
        if self.task.rule is None or more:
            return self
        return self._with(population=dataclasses.replace(own, teaches="every"))

    def _tight(self) -> Deployment:
        """What the same file meant when "tight" was the calibration of all agents by default."""
        own = self.settings.agent
        if "calibration" in own or "calibration" not in self.agent.parameters():
            return self
        return self._with(agent={**own, "calibration": "tight"})

    def _with(self, **sections: Any) -> Deployment:
        """The same file with other sections."""
        settings = dataclasses.replace(self.settings, **sections)
        return self._build(settings, self.folder / f"{self.stem}.toml")

    def __repr__(self) -> str:
        return f"Deployment({self.name!r}, {self.agent.name}, {self.task.users} reports)"


def _disk(folder: Path) -> int:
    """The device that a folder lies on, or would lie on."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder.stat().st_dev


def _database(url: str, folder: Path) -> str:
    """The URL, with the file of an SQLite database placed beside the deployment file."""
    plain = "sqlite:///"
    if url.startswith(plain) and not url.startswith(plain + "/"):
        return f"{plain}{(folder / url.removeprefix(plain)).resolve()}"
    if url.startswith(("postgresql://", "postgres://")):
        return "postgresql+psycopg://" + url.split("://", 1)[1]
    if url.startswith((plain, "postgresql+psycopg://")):
        return url
    raise InvalidInput(
        f"database in [storage] starts with {url.split(':')[0]!r}, but it must be an SQLite file "
        "(sqlite:///file.db) or a PostgreSQL URL (postgresql://user@host/name)"
    )


def _acceptance(updates: UpdatesSection, duration: float) -> tuple[int | None, float, float]:
    """Accepted versions, delay and grace: by time if the task has a duration."""
    if not duration:
        for key in ("delay", "grace"):
            if getattr(updates, key) is not None:
                raise InvalidInput(
                    f"{key} in [updates] goes with duration in [task], the time one episode takes; "
                    "give both or neither"
                )
        return updates.accepted_versions or 2, 0.0, 0.0
    if updates.accepted_versions is not None:
        raise InvalidInput(
            "accepted_versions in [updates] is the rule of tasks without a duration; with one, "
            "reports are taken by time: leave it out, or set grace"
        )
    delay, grace = updates.delay, updates.grace
    if delay is None:
        delay = durations.default_delay(duration)
    if delay > duration:
        raise InvalidInput(
            f"delay in [updates] = {durations.in_words(delay)}, but it must not be above duration "
            f"in [task] = {durations.in_words(duration)}: devices decline to hold a report for "
            "longer"
        )
    return None, delay, durations.default_grace(duration) if grace is None else grace
