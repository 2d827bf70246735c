"""The mapping file: which columns of a log are what, which states and actions are declared.

Everything in it is public, and must have been written without a look at what people did: bins,
labels, ranges and the horizon become part of the guarantee's assumptions.
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tacit.errors import InvalidInput, suggestion
from tacit.privacy.ledger_lines import printable
from tacit.task.pairs import allowed_flags, terminals
from tacit.task.task import Task
from tacit.validate import choice, integer, number

ROLES = ("person", "episode", "step", "reward", "propensity", "ends")
"""Columns that a log may have beside states and actions; only the person must be there."""

PEOPLE = 10_000_000
"""People that a log may have, unless the mapping says otherwise."""

Steps = Literal["numbered", "ordered", "dated"]

_TABLES: dict[str, tuple[str, ...]] = {
    "data": ("name", "people"),
    "budget": ("epsilon", "delta"),
    "columns": ROLES,
    "action": ("column", "values", "bins", "size", "other"),
    "reward": ("range", "most", "missing"),
    "task": ("horizon", "terminal", "allowed", "steps", "first_step", "date_format"),
}


@dataclass(frozen=True)
class Cells:
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
    def read(cls, data: Mapping[str, Any], where: str) -> Cells:
        """One table of the mapping."""
        _known(data, _TABLES["action"], where)
        column = printable(data.get("column"), f"{where}: column")
        kinds = [kind for kind in ("values", "bins", "size") if kind in data]
        if len(kinds) != 1:
            raise InvalidInput(
                f"{where} must say exactly one of values (a list of labels), bins (edges between "
                f"numbers) and size (numbers from 0), got {', '.join(kinds) or 'none'}"
            )
        edges: tuple[float, ...] = ()
        if kinds[0] == "values":
            names = tuple(map(_label, _listed(data["values"], f"{where}: values")))
            if not all(name.strip() for name in names):
                raise InvalidInput(
                    f"{where}: a label in values is empty: a missing value goes to other"
                )
            folded = [name.strip().casefold() for name in names]
            if len(set(folded)) < len(names):
                raise InvalidInput(
                    f"{where}: values must name each label once, and two of them differ at most in "
                    "case or spaces; they would be two cells: spell them alike in the log"
                )
        elif kinds[0] == "size":
            size = integer(data["size"], f"{where}: size", low=1, high=1_000_000)
            names = tuple(str(i) for i in range(size))
        else:
            edges = tuple(number(x, f"{where}: bins") for x in _listed(data["bins"], where))
            if list(edges) != sorted(set(edges)):
                raise InvalidInput(f"{where}: the edges of bins must increase")
            said = [f"{edge:g}" for edge in edges]
            names = (
                f"< {said[0]}",
                *(f"{low} to {high}" for low, high in itertools.pairwise(said)),
                f">= {said[-1]}",
            )
        other = -1
        if "other" in data:
            label = _label(data["other"])
            names = names if label in names else (*names, label)
            other = names.index(label)
        return cls(column, names, kinds[0], edges, other)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Mapped:
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
        top: the most that one episode earns, in rewards rescaled to [0, 1].
    """

    name: str
    budget: tuple[float, float]
    columns: Mapping[str, str]
    states: tuple[Cells, ...]
    action: Cells
    task: Task
    steps: Steps = "numbered"
    first_step: int = 0
    date_format: str = ""
    reward_range: tuple[float, float] = (0.0, 1.0)
    missing_reward: float = math.nan
    top: float = field(default=math.nan)

    @property
    def ended(self) -> int:
        """The state after a row that ends, -1 if no column says that."""
        return self.task.sizes["states"] - 1 if "ends" in self.columns else -1

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever wrote the mapping may not have meant, as sentences."""
        said = []
        if "reward" not in self.columns:
            least = self.reward_range[0]
            said.append(f"the mapping names no column of rewards: all of them count as {least:g}")
        if "ends" not in self.columns and "terminal" in self.task.known:
            said.append(
                "an episode ends by a row in a terminal state; where the log has no such row it "
                "counts as cut, and values as if it had gone on, unless [columns] ends says it"
            )
        return tuple(said)

    @property
    def read(self) -> tuple[str, ...]:
        """Columns that are read, each once."""
        found = [*self.columns.values(), *(c.column for c in self.states), self.action.column]
        return tuple(dict.fromkeys(found))

    def original(self, value: float) -> float:
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
            "most_per_episode": self.original(self.top),
            **({"notes": list(self.notes)} if self.notes else {}),
        }


def read_mapping(path: str | Path) -> Mapped:
    """Read and check a mapping file."""
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(
            f"there is no mapping {path}; `tacit offline LOG --task {path} --init` writes one to "
            "start from"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    try:
        return make_mapping(data)
    except InvalidInput as error:
        raise InvalidInput(f"{path.name}: {error}") from None


def make_mapping(data: Mapping[str, Any]) -> Mapped:
    """The same from what the file says."""
    _known(data, (*_TABLES, "state"), "the mapping")
    for table in ("data", "columns", "task", "action"):
        if not isinstance(data.get(table), Mapping):
            raise InvalidInput(f"the mapping needs a table [{table}]")
    for table, keys in _TABLES.items():
        _known(data.get(table, {}), keys, f"[{table}]")
    columns = {role: printable(name, role) for role, name in data["columns"].items()}
    if "person" not in columns:
        raise InvalidInput(
            "[columns] must name the column person: privacy is promised to people, so every row "
            "has to say whose it is"
        )
    parts = data.get("state")
    if not isinstance(parts, Sequence) or not parts or isinstance(parts, str):
        raise InvalidInput("the mapping needs at least one table [[state]]")
    states = tuple(Cells.read(part, f"[[state]] {i + 1}") for i, part in enumerate(parts))
    action = Cells.read(data["action"], "[action]")
    about, paid = data["task"], data.get("reward", {})
    low, high = _span(paid.get("range", [0.0, 1.0]))
    task = _task(data["data"], about, states, action, "ends" in columns, (low, high))
    steps = choice(about.get("steps", "numbered"), "steps", ("numbered", "ordered", "dated"))
    ends_known = bool((np.diff(task.pairs.first) == 0).any())
    if ends_known:
        low, high = min(low, 0.0), max(high, 0.0)
    most = paid.get("most")
    top = float(task.horizon)
    if most is not None:
        top = (number(most, "[reward] most") - task.horizon * low) / (high - low)
        top = number(top, "[reward] most, rescaled", low=0.0, high=task.horizon, low_open=True)
    budget = data.get("budget", {})
    return Mapped(
        name=printable(data["data"].get("name"), "[data] name"),
        budget=(
            number(budget.get("epsilon", 1.0), "[budget] epsilon", low=0.0, low_open=True),
            number(budget.get("delta", 1e-5), "[budget] delta", low=0.0, high=1.0, low_open=True),
        ),
        columns=columns,
        states=states,
        action=action,
        task=task,
        steps=steps,  # type: ignore[arg-type]
        first_step=integer(about.get("first_step", 0), "first_step"),
        date_format=_date_format(about.get("date_format", ""), steps),
        reward_range=(low, high),
        missing_reward=_missing(paid.get("missing"), (low, high)),
        top=top,
    )


def _task(
    data: Mapping[str, Any],
    about: Mapping[str, Any],
    states: Sequence[Cells],
    action: Cells,
    ends: bool,
    paid: tuple[float, float],
) -> Task:
    """The public task of a mapping."""
    names = tuple(" / ".join(parts) for parts in itertools.product(*(c.names for c in states)))
    if ends:
        names = (*names, "ended")
    labels = {"states": names, "actions": action.names}
    over = terminals(about.get("terminal", ()), len(names), names)
    if ends:
        over[-1] = True
    shape = (len(names), len(action.names))
    given = about.get("allowed")
    if given is not None and ends:
        given = [*given, []]
    flags = allowed_flags(given, over, shape, action.names)
    known: dict[str, Any] = {}
    if over.any():
        known["terminal"] = over
        low, high = min(paid[0], 0.0), max(paid[1], 0.0)
        if low < 0.0:
            known["end_reward"] = np.asarray(-low / (high - low))
    if not flags[~over].all():
        known["allowed"] = flags
    return Task(
        family="tabular",
        horizon=integer(about.get("horizon"), "[task] horizon", low=1),
        sizes={"states": shape[0], "actions": shape[1]},
        homogeneous=True,
        users=integer(data.get("people", PEOPLE), "[data] people", low=1),
        known=known,
        labels=labels,
    )


def _date_format(given: Any, steps: str) -> str:
    if given == "":
        return ""
    form, date = printable(given, "[task] date_format"), datetime(2001, 2, 3, 4, 5, 6)
    try:
        datetime.strptime(date.strftime(form), form)
    except ValueError as error:
        raise InvalidInput(f"[task] date_format cannot be used: {error}") from None
    if steps != "dated":
        raise InvalidInput('[task] date_format is for steps = "dated"')
    return form


def _span(given: Any) -> tuple[float, float]:
    ends = [number(x, "[reward] range") for x in _listed(given, "[reward] range")]
    if len(ends) != 2 or not 0.0 < ends[1] - ends[0] < math.inf:
        raise InvalidInput(
            "[reward] range must be the least and the largest reward of one step, a finite width "
            "apart"
        )
    return ends[0], ends[1]


def _label(given: Any) -> str:
    """As a column of truth values has it, and as CSV files mostly do: true and false."""
    return str(given).lower() if isinstance(given, bool) else str(given)


def _missing(given: Any, span: tuple[float, float]) -> float:
    """What a missing reward counts as, NaN if nothing is said; what is said must be a reward."""
    if given is None:
        return math.nan
    return number(given, "[reward] missing", low=span[0], high=span[1])


def _listed(given: Any, where: str) -> list[Any]:
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        raise InvalidInput(f"{where} must be a list, and not empty")
    return list(given)


def _known(data: Any, keys: Sequence[str], where: str) -> None:
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{where} must be a table of keys and values")
    for key in data:
        if key not in keys:
            raise InvalidInput(f"{where} has no key {key!r}{suggestion(key, keys)}")
