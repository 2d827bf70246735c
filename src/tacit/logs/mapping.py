"""The mapping file: which columns of a log are what, which states and actions are declared.

Everything in it is public, and must have been written without a look at what people did: bins,
labels, ranges and the horizon become part of the guarantee's assumptions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from tacit.config import anything, key, read_text, read_toml, section, unknown
from tacit.errors import InvalidInput
from tacit.privacy.ledger_lines import printable
from tacit.task.pairs import allowed_flags, terminals
from tacit.task.task import Task
from tacit.validate import choice, integer, number

ROLES = ("person", "episode", "step", "reward", "propensity", "ends")
"""Columns that a log may have beside states and actions; only the person must be there."""

PEOPLE = 10_000_000
"""People that a log may have, unless the mapping says otherwise."""

Steps = Literal["numbered", "ordered", "dated"]


@dataclass(frozen=True)
class Discretizer:
    """How the values of one column become cells, each with a name.

    Attributes:
        column: its name in the log.
        names: of the cells.
        kind: "values" are labels, "bins" numbers between edges, "size" numbers from 0.
        edges: of bins, increasing.
        other: the cell of values that are missing or were not declared; -1 if there is none, and
            such a row counts as missing.
    """

    column: str
    names: tuple[str, ...]
    kind: Literal["values", "bins", "size"]
    edges: tuple[float, ...] = ()
    other: int = -1

    @classmethod
    def read(cls, data: Mapping[str, Any], where: str) -> Discretizer:
        """One table of the mapping."""
        about = section(_Column, data, where, named="{where}: {key}")
        kinds = [kind for kind in ("values", "bins", "size") if getattr(about, kind) is not None]
        if len(kinds) != 1:
            raise InvalidInput(
                f"{where} must say exactly one of values (a list of labels), bins (edges between "
                f"numbers) and size (numbers from 0), got {', '.join(kinds) or 'none'}"
            )
        names, edges = about.values or (), about.bins or ()
        if about.size is not None:
            names = tuple(str(i) for i in range(about.size))
        if edges:
            at = [f"{edge:g}" for edge in edges]
            between = (f"{low} to {high}" for low, high in itertools.pairwise(at))
            names = (f"< {at[0]}", *between, f">= {at[-1]}")
        if about.other is None:
            return cls(about.column, names, kinds[0], edges)  # type: ignore[arg-type]
        names = names if about.other in names else (*names, about.other)
        return cls(about.column, names, kinds[0], edges, names.index(about.other))  # type: ignore[arg-type]


@dataclass(frozen=True)
class LogMapping:
    """A checked mapping: the public task, and how rows of the log become steps of it.

    Attributes:
        name: of the data set; its ledger is kept under this name.
        budget: epsilon and delta that all runs with its ledger file together may spend.
        columns: by role, the name of the column.
        states: cells of the state; with several columns, every combination is a state.
        action: cells of the action.
        task: sizes, horizon and declared facts.
        steps: "numbered" from ``first_step`` without gaps, else "ordered" by number or "dated".
        first_step: number of the first step.
        date_format: of dates that are texts, as ``datetime.strptime`` takes it; "" for ISO 8601.
        reward_range: least and largest reward of one step.
        missing_reward: what a reward that is missing counts as; NaN if nothing is declared: such a
            row then teaches nothing.
        max_return: the most that one episode earns, in rewards rescaled to [0, 1].
    """

    name: str
    budget: tuple[float, float]
    columns: Mapping[str, str]
    states: tuple[Discretizer, ...]
    action: Discretizer
    task: Task
    steps: Steps = "numbered"
    first_step: int = 0
    date_format: str = ""
    reward_range: tuple[float, float] = (0.0, 1.0)
    missing_reward: float = math.nan
    max_return: float = field(default=math.nan)

    @property
    def ended(self) -> int:
        """The state after a row that ends, -1 if no column says that."""
        return self.task.sizes["states"] - 1 if "ends" in self.columns else -1

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever wrote the mapping may not have meant, as sentences."""
        notes = []
        if "reward" not in self.columns:
            least = self.reward_range[0]
            notes.append(f"the mapping names no column of rewards: all of them count as {least:g}")
        if "ends" not in self.columns and "terminal" in self.task.known:
            notes.append(
                "an episode ends by a row in a terminal state; where the log has no such row it "
                "counts as cut, and values as if it had gone on, unless [columns] ends says it"
            )
        return tuple(notes)

    @property
    def columns_read(self) -> tuple[str, ...]:
        """Columns that are read, each once."""
        names = [*self.columns.values(), *(c.column for c in self.states), self.action.column]
        return tuple(dict.fromkeys(names))

    def to_log_units(self, value: float) -> float:
        """A value in rewards of [0, 1] per step, in the log's own rewards."""
        low, high = self.reward_range
        return self.task.horizon * low + (high - low) * value

    def to_json(self) -> dict[str, Any]:
        """What a page says about it."""
        return {
            "name": self.name,
            "states": self.task.sizes["states"],
            "actions": self.task.sizes["actions"],
            "pairs": len(self.task.pairs.action),
            "horizon": self.task.horizon,
            "people_at_most": self.task.users,
            "reward_range": list(self.reward_range),
            "most_per_episode": self.to_log_units(self.max_return),
            **({"notes": list(self.notes)} if self.notes else {}),
        }


def read_mapping(path: str | Path) -> LogMapping:
    """Read and check a mapping file."""
    path = Path(path)
    init = f"tacit offline LOG --task {path} --init"
    text = read_text(path, f"there is no mapping {path}; `{init}` writes one to start from")
    try:
        return make_mapping(read_toml(text))
    except InvalidInput as error:
        raise InvalidInput(f"{path.name}: {error}") from None


def make_mapping(data: Mapping[str, Any]) -> LogMapping:
    """The same from what the file says."""
    whole = {"budget": {}, "reward": {}, **data}
    file = section(_File, whole, "the mapping", named="{where} {key}")
    columns, action = _columns(file.columns), Discretizer.read(file.action, "[action]")
    low, high = file.reward.range
    task = _task(file, action, "ends" in columns)
    if (np.diff(task.pairs.first) == 0).any():
        low, high = min(low, 0.0), max(high, 0.0)
    top, missing = float(task.horizon), file.reward.missing
    if file.reward.most is not None:
        top = (file.reward.most - task.horizon * low) / (high - low)
        top = number(top, "[reward] most, rescaled", low=0.0, high=task.horizon, low_open=True)
    if missing is not None:
        missing = number(missing, "[reward] missing", low=low, high=high)
    if file.task.date_format and file.task.steps != "dated":
        raise InvalidInput('[task] date_format is for steps = "dated"')
    return LogMapping(
        name=file.data.name,
        budget=(file.budget.epsilon, file.budget.delta),
        columns=columns,
        states=file.state,
        action=action,
        task=task,
        steps=file.task.steps,
        first_step=file.task.first_step,
        date_format=file.task.date_format,
        reward_range=(low, high),
        missing_reward=math.nan if missing is None else missing,
        max_return=top,
    )


def _task(file: _File, action: Discretizer, ends: bool) -> Task:
    """The public task of a mapping."""
    about, actions, (low, high) = file.task, action.names, file.reward.range
    names = tuple(" / ".join(parts) for parts in itertools.product(*(c.names for c in file.state)))
    allowed = about.allowed
    if ends:
        names, allowed = (*names, "ended"), None if allowed is None else [*allowed, []]
    over = terminals(about.terminal, len(names), names)
    over[-1] |= ends
    flags = allowed_flags(allowed, over, (len(names), len(actions)), actions)
    known: dict[str, Any] = {}
    if over.any():
        known["terminal"] = over
        low, high = min(low, 0.0), max(high, 0.0)
        if low < 0.0:
            known["end_reward"] = np.asarray(-low / (high - low))
    if not flags[~over].all():
        known["allowed"] = flags
    return Task(
        family="tabular",
        horizon=about.horizon,
        sizes={"states": len(names), "actions": len(actions)},
        homogeneous=True,
        users=file.data.people,
        known=known,
        labels={"states": names, "actions": actions},
    )


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise InvalidInput(f"{name} must be a list, and not empty")
    return list(value)


def _label(value: Any, name: str) -> str:
    """As a column of truth values has it, and as CSV files mostly do: true and false."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _labels(value: Any, name: str) -> tuple[str, ...]:
    labels = tuple(_label(one, name) for one in _listed(value, name))
    if not all(label.strip() for label in labels):
        raise InvalidInput(f"{name}: a label is empty: a missing value goes to other")
    if len({label.strip().casefold() for label in labels}) < len(labels):
        raise InvalidInput(
            f"{name} must name each label once, and two of them differ at most in case or spaces; "
            "they would be two cells: spell them alike in the log"
        )
    return labels


def _edges(value: Any, name: str) -> tuple[float, ...]:
    edges = [number(x, name) for x in _listed(value, name)]
    if edges != sorted(set(edges)):
        raise InvalidInput(f"{name}: the edges must increase")
    return tuple(edges)


def _span(value: Any, name: str) -> tuple[float, float]:
    ends = [number(x, name) for x in _listed(value, name)]
    if len(ends) != 2 or not 0.0 < ends[1] - ends[0] < math.inf:
        raise InvalidInput(
            f"{name} must be the least and the largest reward of one step, a finite width apart"
        )
    return ends[0], ends[1]


def _date_format(value: Any, name: str) -> str:
    if value == "":
        return ""
    form, date = printable(value, name), datetime(2001, 2, 3, 4, 5, 6)
    try:
        datetime.strptime(date.strftime(form), form)
    except ValueError as error:
        raise InvalidInput(f"{name} cannot be used: {error}") from None
    return form


def _states(value: Any, name: str) -> tuple[Discretizer, ...]:
    if not isinstance(value, Sequence) or not value or isinstance(value, str):
        raise InvalidInput("the mapping needs at least one table [[state]]")
    return tuple(Discretizer.read(part, f"[[state]] {i + 1}") for i, part in enumerate(value))


def _columns(table: Mapping[str, Any]) -> dict[str, str]:
    for wrong in unknown(table, ROLES, "[columns]"):
        raise InvalidInput(wrong)
    if "person" not in table:
        raise InvalidInput(
            "[columns] must name the column person: privacy is promised to people, so every row "
            "has to say whose it is"
        )
    return {role: printable(name, f"[columns] {role}") for role, name in table.items()}


@dataclass(frozen=True, kw_only=True)
class _Column:
    column: str = key(printable)
    values: tuple[str, ...] | None = key(_labels, default=None)
    bins: tuple[float, ...] | None = key(_edges, default=None)
    size: int | None = key(integer, default=None, low=1, high=1_000_000)
    other: str | None = key(_label, default=None)


@dataclass(frozen=True, kw_only=True)
class _Data:
    name: str = key(printable)
    people: int = key(integer, default=PEOPLE, low=1)


@dataclass(frozen=True, kw_only=True)
class _Budget:
    epsilon: float = key(number, default=1.0, low=0.0, low_open=True)
    delta: float = key(number, default=1e-5, low=0.0, high=1.0, low_open=True)


@dataclass(frozen=True, kw_only=True)
class _Reward:
    range: tuple[float, float] = key(_span, default=(0.0, 1.0))
    most: float | None = key(number, default=None)
    missing: float | None = key(number, default=None)


@dataclass(frozen=True, kw_only=True)
class _About:
    horizon: int = key(integer, low=1)
    terminal: Any = key(anything, default=())
    allowed: Any = key(anything, default=None)
    steps: Steps = key(choice, default="numbered", options=get_args(Steps))
    first_step: int = key(integer, default=0)
    date_format: str = key(_date_format, default="")


_TABLE = "{where} needs a table [{key}]"


@dataclass(frozen=True, kw_only=True)
class _File:
    data: _Data = key(_Data, missing=_TABLE)
    budget: _Budget = key(_Budget)
    columns: dict[str, Any] = key(dict, missing=_TABLE)
    state: tuple[Discretizer, ...] = key(
        _states, missing="{where} needs at least one table [[{key}]]"
    )
    action: dict[str, Any] = key(dict, missing=_TABLE)
    reward: _Reward = key(_Reward)
    task: _About = key(_About, missing=_TABLE)
