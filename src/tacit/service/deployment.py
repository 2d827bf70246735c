"""One TOML file describes a deployment: the task, the agent, the population, and where it runs."""

from __future__ import annotations

import dataclasses
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit import timing, wire
from tacit.agents.base import Agent
from tacit.agents.catalogue import agents
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.pairs import allowed_flags, start_law, terminals
from tacit.privacy.guarantee import Guarantee
from tacit.service.serving import Model, fit, served_model
from tacit.service.settings import (
    Settings,
    TaskSection,
    UpdatesSection,
    from_environment,
    read_settings,
)
from tacit.task import Task

Unit = Literal["user", "participation"]
Ids = Literal["token", "chosen"]
"""Ids of reports follow from the device's token, or senders choose them."""


@dataclass(frozen=True, eq=False)
class Deployment:
    """A checked deployment file. Everything in it is public but the content of the key file.

    Attributes:
        settings: the file itself, section by section.
        folder: what relative paths in it are relative to.
        stem: name of the file without its ending; a server of several tasks calls it so.
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

    @classmethod
    def load(cls, path: str | Path) -> Deployment:
        """Read and check a file; ``TACIT_<SECTION>_<KEY>`` of the environment overrides it.

        ``{task}`` in such a value is the file's name without its ending.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InvalidInput(
                f"there is no file {path}; `tacit serve {path} --init` writes one to start from"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read: {error}") from None
        return cls.parse(text, path, os.environ)

    @classmethod
    def parse(
        cls, text: str, path: str | Path, environ: Mapping[str, str] | None = None
    ) -> Deployment:
        """The same from text; relative paths in it are relative to the folder of ``path``."""
        path, used = Path(path), []
        try:
            data = tomllib.loads(text)
            used = from_environment(data, environ or {}, path.stem)
            return cls._build(read_settings(data), path)
        except (tomllib.TOMLDecodeError, InvalidInput) as error:
            source = " with ".join((path.name, *used[:1])) + (" and others" if used[1:] else "")
            raise InvalidInput(f"{source}: {error}") from None

    @classmethod
    def _build(cls, settings: Settings, path: Path) -> Deployment:
        """What follows from several settings together, or from where the file lies."""
        folder, stem, storage = path.parent, path.stem, settings.storage
        task = _task(settings, folder)
        agent, bound = fit(dict(settings.agent), task, settings.updates.minimum_batch)
        if agents.entry(agent.name).package:
            raise InvalidInput(f"{agent.name} is not one of tacit's own, and devices run no other")
        opens, closes = settings.window.opens, settings.window.closes
        if opens is not None and closes is not None and opens >= closes:
            raise InvalidInput("[window] closes before it opens; swap the two times")
        deployment = cls(
            settings,
            folder,
            stem,
            task,
            agent,
            bound,
            *_acceptance(settings.updates, task.duration),
            database=_database(storage.database or f"sqlite:///{stem}.db", folder),
            key_file=folder / (storage.key_file or f"{stem}.key"),
            witness=folder / (storage.witness or f"{stem}.witness"),
        )
        if deployment.same_disk and not storage.witness_on_same_disk:
            raise InvalidInput(
                f"the witness {deployment.witness.name} would lie on the disk of the database: "
                "whoever restores that disk turns back both, and noise is drawn twice unnoticed. "
                "Name a file on another disk as witness in [storage], or accept this openly with "
                "witness_on_same_disk = true (devices, --check and the dashboard say so)"
            )
        return deployment

    @staticmethod
    def example() -> str:
        """A commented file that runs as it is."""
        return resources.files("tacit.service").joinpath("example.toml").read_text("utf-8")

    @property
    def name(self) -> str:
        """What the operator calls the task."""
        return self.settings.task.name

    @property
    def labels(self) -> dict[str, list[str] | None]:
        """Names of the states and of the actions, None where they have none."""
        return _labels(self.settings.task)

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
        """Who decides the ids of reports where they decide the question: best that nobody can."""
        asks = self.model == "local" and wire.local_privatizer(self.bound).public_step
        return "token" if asks and self.unit == "user" else "chosen"

    @property
    def sending(self) -> str:
        """What the time of a report tells, in a sentence."""
        return timing.when_sent(self.task.duration, self.delay)

    @property
    def taking(self) -> str:
        """How long a report is taken, in a sentence."""
        return timing.how_long_taken(
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
            "task": wire.task_to_json(self.task),
            "agent": {"name": self.agent.name, "parameters": self.agent.parameters()},
            "reward_range": list(self.settings.task.reward_range),
            "absorbing_state": self.settings.task.absorbing_state,
            "unit": self.unit,
        }

    @cached_property
    def fixed(self) -> dict[str, str]:
        """Every term of the file as JSON, by key and section: fixed once the database is made.

        Where things lie and where it listens may change; what people and devices were told may not.
        """
        sections = self.settings.model_dump(
            mode="json",
            warnings=False,
            include={
                "task": True,
                "agent": True,
                "population": True,
                "updates": True,
                "window": True,
                "storage": {"keep_reports"},
            },
        )
        return {
            f"{key} in [{section}]": json.dumps(value, sort_keys=True)
            for section, keys in sections.items()
            for key, value in keys.items()
            if key != "pace"  # a guess of the operator, which may be corrected
        }

    @cached_property
    def task_id(self) -> str:
        """Digest of the terms."""
        return wire.task_id(self.terms)

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
            if key in updates.model_fields_set:
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
        delay = timing.default_delay(duration)
    if delay > duration:
        raise InvalidInput(
            f"delay in [updates] = {timing.in_words(delay)}, but it must not be above duration in "
            f"[task] = {timing.in_words(duration)}: devices decline to hold a report for longer"
        )
    return None, delay, timing.default_grace(duration) if grace is None else grace


def _labels(named: TaskSection) -> dict[str, list[str] | None]:
    given = {"states": named.states, "actions": named.actions}
    return {kind: None if isinstance(x, int) else list(x) for kind, x in given.items()}


def _count(labels: tuple[str, ...] | int) -> int:
    return labels if isinstance(labels, int) else len(labels)


def _task(settings: Settings, folder: Path) -> Task:
    """The task that the file describes."""
    named, population = settings.task, settings.population
    if population.tokens == "shared" and population.participations > 1:
        raise InvalidInput(
            "with one shared token nobody counts how often a person takes part, so the unit is "
            'one participation: leave participations out, or choose tokens = "per-device"'
        )
    task = Task(
        family="tabular",
        horizon=named.horizon,
        sizes={"states": _count(named.states), "actions": _count(named.actions)},
        homogeneous=named.homogeneous,
        users=population.users,
        known={**_facts(named, folder), **_declared(named)},
        participations=population.participations,
        duration=named.duration,
        labels={kind: tuple(names) for kind, names in _labels(named).items() if names},
    )
    if named.absorbing_state >= task.sizes["states"]:
        raise InvalidInput(
            f"absorbing_state = {named.absorbing_state} in [task], but states are numbered from 0 "
            f"to {task.sizes['states'] - 1}"
        )
    return task


def _declared(named: TaskSection) -> dict[str, npt.NDArray[Any]]:
    """Terminal states, allowed actions and the start law, as ``TabularMDP`` declares them."""
    S, A, names = _count(named.states), _count(named.actions), _labels(named)
    ends = terminals(named.terminal or (), S, names["states"])
    may = allowed_flags(named.allowed, ends, (S, A), names["actions"])
    found: dict[str, npt.NDArray[Any]] = {}
    if ends.any():
        low, high = named.reward_range
        if not low <= 0.0 <= high:
            raise InvalidInput(
                f"reward_range = [{low:g}, {high:g}] in [task], but it must hold 0 where there are "
                "terminal states: that is what they pay"
            )
        found["terminal"], found["end_reward"] = ends, np.asarray(-low / (high - low))
    if not may[~ends].all():
        found["allowed"] = may
    if named.start is not None:
        found["initial"] = start_law(named.start, S, names["states"])
    return found


def _facts(named: TaskSection, folder: Path) -> dict[str, npt.NDArray[Any]]:
    """Declared transition features phi [S, A, S, d], and the bound on their parameter."""
    if named.features is None:
        if named.theta_norm is not None:
            raise InvalidInput("theta_norm in [task] goes with features; give both or neither")
        return {}
    if named.theta_norm is None:
        raise InvalidInput("features in [task] need theta_norm, the bound on their parameter")
    path = folder / named.features
    try:
        phi = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"features: {path} cannot be read as a .npy file ({error})") from None
    S, A = _count(named.states), _count(named.actions)
    fits = isinstance(phi, np.ndarray) and phi.ndim == 4 and phi.shape[:3] == (S, A, S)
    if not fits or phi.dtype.kind != "f" or not np.isfinite(phi).all():
        raise InvalidInput(
            f"features: {path.name} must hold finite numbers phi(s'|s,a) of shape [states, "
            f"actions, states, d] = [{S}, {A}, {S}, d]"
        )
    return {"features": phi.astype(np.float64), "theta_norm": np.array(named.theta_norm)}
