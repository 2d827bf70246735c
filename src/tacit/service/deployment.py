"""One TOML file describes a deployment: the task, the agent, the population, and where it runs."""

from __future__ import annotations

import dataclasses
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
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.privacy.guarantee import Guarantee
from tacit.service.serving import Model, fit, served_model
from tacit.service.settings import read_sections
from tacit.task import Task

Tokens = Literal["per-device", "shared"]
Unit = Literal["user", "participation"]


@dataclass(frozen=True, eq=False)
class Deployment:
    """A checked deployment file. Everything in it is public but the content of the key file.

    Attributes:
        name: what the operator calls the task.
        task: what is learned, as the learner is told.
        agent: the recipe.
        bound: the recipe fitted to the task, minimum batch included.
        states: names of the states, None where they have none.
        actions: likewise.
        reward_range: what devices scale to [0, 1].
        absorbing_state: what a trajectory that ends early is padded with.
        tokens: "per-device" makes the unit "user", "shared" makes it "participation".
        minimum_batch: least number of reports between two policies.
        cadence: least number of seconds between two policies.
        accepted_versions: how many of the newest policy versions reports may name; None where the
            task has a duration, so that time decides.
        delay: most seconds for which a device holds its report after the episode, at random.
        grace: seconds for which a report is taken after the last moment it can be due.
        opens: unix time before which reports are refused, None for no such time.
        closes: likewise the time from which on they are.
        database: SQLAlchemy URL.
        key_file: keys of the encrypted table (joint only).
        witness: file that notices a database restored from before a release (joint only).
        keep_reports: keep what was absorbed, so that every policy can be worked out again.
        host: address the server listens on.
        port: likewise.
        max_body_bytes: largest request.
        max_batch: most reports in one request.
        fleet: the section of ``tacit fleet``, as written.
        folder: what relative paths are relative to.
    """

    name: str
    task: Task
    agent: Agent
    bound: BoundAgent
    states: tuple[str, ...] | None
    actions: tuple[str, ...] | None
    reward_range: tuple[float, float]
    absorbing_state: int
    tokens: Tokens
    minimum_batch: int
    cadence: float
    accepted_versions: int | None
    delay: float
    grace: float
    opens: float | None
    closes: float | None
    database: str
    key_file: Path
    witness: Path
    keep_reports: bool
    host: str
    port: int
    max_body_bytes: int
    max_batch: int
    fleet: Mapping[str, Any]
    folder: Path

    @classmethod
    def load(cls, path: str | Path) -> Deployment:
        """Read and check a file."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InvalidInput(
                f"there is no file {path}; `tacit serve {path} --init` writes one to start from"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read: {error}") from None
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: str | Path) -> Deployment:
        """The same from text; relative paths in it are relative to the folder of ``path``."""
        path = Path(path)
        try:
            sections = read_sections(tomllib.loads(text))
            return cls._build(sections, path)
        except (tomllib.TOMLDecodeError, InvalidInput) as error:
            raise InvalidInput(f"{path.name}: {error}") from None

    @classmethod
    def _build(cls, sections: Mapping[str, Mapping[str, Any]], path: Path) -> Deployment:
        named, population = sections["task"], sections["population"]
        tokens: Tokens = population.get("tokens", "per-device")
        times = population.get("participations", 1)
        if tokens == "shared" and times > 1:
            raise InvalidInput(
                "with one shared token nobody counts how often a person takes part, so the unit is "
                "one participation: leave participations out, or choose tokens = "
                '"per-device"'
            )
        states, actions = named["states"], named["actions"]
        sizes = {
            "states": states if isinstance(states, int) else len(states),
            "actions": actions if isinstance(actions, int) else len(actions),
        }
        folder = path.parent
        task = Task(
            family="tabular",
            horizon=named["horizon"],
            sizes=sizes,
            homogeneous=named.get("homogeneous", False),
            users=population["users"],
            known=_facts(named, folder),
            participations=times,
            duration=named.get("duration", 0.0),
        )
        absorbing = named.get("absorbing_state", 0)
        if absorbing >= sizes["states"]:
            raise InvalidInput(
                f"absorbing_state = {absorbing} in [task], but states are numbered from 0 to "
                f"{sizes['states'] - 1}"
            )
        updates, window = sections["updates"], sections["window"]
        storage, server = sections["storage"], sections["server"]
        minimum = updates.get("minimum_batch", 100)
        agent, bound = fit(dict(sections["agent"]), task, minimum)
        opens, closes = window.get("opens"), window.get("closes")
        if opens is not None and closes is not None and opens >= closes:
            raise InvalidInput("[window] closes before it opens; swap the two times")
        stem = path.stem
        return cls(
            name=named["name"],
            task=task,
            agent=agent,
            bound=bound,
            states=None if isinstance(states, int) else states,
            actions=None if isinstance(actions, int) else actions,
            reward_range=named.get("reward_range", (0.0, 1.0)),
            absorbing_state=absorbing,
            tokens=tokens,
            minimum_batch=minimum,
            cadence=updates.get("cadence", 0.0),
            **_acceptance(updates, task.duration),
            opens=opens,
            closes=closes,
            database=_database(storage.get("database", f"sqlite:///{stem}.db"), folder),
            key_file=folder / storage.get("key_file", f"{stem}.key"),
            witness=folder / storage.get("witness", f"{stem}.witness"),
            keep_reports=storage.get("keep_reports", False),
            host=server.get("host", "127.0.0.1"),
            port=server.get("port", 8080),
            max_body_bytes=server.get("max_body_bytes", 4_000_000),
            max_batch=server.get("max_batch", 1000),
            fleet=sections["fleet"],
            folder=folder,
        )

    @staticmethod
    def example() -> str:
        """A commented file that runs as it is."""
        return resources.files("tacit.service").joinpath("example.toml").read_text("utf-8")

    @cached_property
    def model(self) -> Model:
        """Who is trusted, which follows from the agent."""
        return served_model(self.bound, self.agent)

    @property
    def unit(self) -> Unit:
        """Whose data the guarantee is about."""
        return "user" if self.tokens == "per-device" else "participation"

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
            "reward_range": list(self.reward_range),
            "absorbing_state": self.absorbing_state,
            "unit": self.unit,
        }

    @cached_property
    def task_id(self) -> str:
        """Digest of the terms."""
        return wire.task_id(self.terms)

    def __repr__(self) -> str:
        return f"Deployment({self.name!r}, {self.agent.name}, {self.task.users} reports)"


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


def _acceptance(updates: Mapping[str, Any], duration: float) -> dict[str, Any]:
    """When reports are due and how long they are taken: by time if the task has a duration."""
    if not duration:
        for key in ("delay", "grace"):
            if key in updates:
                raise InvalidInput(
                    f"{key} in [updates] goes with duration in [task], the time one episode takes; "
                    "give both or neither"
                )
        return {
            "accepted_versions": updates.get("accepted_versions", 2),
            "delay": 0.0,
            "grace": 0.0,
        }
    if "accepted_versions" in updates:
        raise InvalidInput(
            "accepted_versions in [updates] is the rule of tasks without a duration; with one, "
            "reports are taken by time: leave it out, or set grace"
        )
    delay = updates.get("delay", timing.default_delay(duration))
    if delay > duration:
        raise InvalidInput(
            f"delay in [updates] = {timing.in_words(delay)}, but it must not be above duration in "
            f"[task] = {timing.in_words(duration)}: devices decline to hold a report for longer"
        )
    grace = updates.get("grace", timing.default_grace(duration))
    return {"accepted_versions": None, "delay": delay, "grace": grace}


def _facts(named: Mapping[str, Any], folder: Path) -> dict[str, npt.NDArray[Any]]:
    """Declared transition features phi [S, A, S, d], and the bound on their parameter."""
    if "features" not in named:
        if "theta_norm" in named:
            raise InvalidInput("theta_norm in [task] goes with features; give both or neither")
        return {}
    if "theta_norm" not in named:
        raise InvalidInput("features in [task] need theta_norm, the bound on their parameter")
    path = folder / named["features"]
    try:
        phi = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"features: {path} cannot be read as a .npy file ({error})") from None
    counts = [x if isinstance(x, int) else len(x) for x in (named["states"], named["actions"])]
    wanted = (counts[0], counts[1], counts[0])
    fits = isinstance(phi, np.ndarray) and phi.ndim == 4 and phi.shape[:3] == wanted
    if not fits or phi.dtype.kind != "f" or not np.isfinite(phi).all():
        raise InvalidInput(
            f"features: {path.name} must hold finite numbers phi(s'|s,a) of shape [states, "
            f"actions, states, d] = [{wanted[0]}, {wanted[1]}, {wanted[2]}, d]"
        )
    return {"features": phi.astype(np.float64), "theta_norm": np.array(named["theta_norm"])}
