"""A sweep as a person writes it: a TOML file in which every list is an axis.

Top-level keys are crossed with each other; ``[[cases]]`` are crossed each on its own, and take what
they do not say from the top level. ``[choose]`` names a parameter that is chosen on seeds of its
own before anything is reported. See ``tacit sweep --init`` for an example with comments.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tacit.errors import InvalidInput, suggestion
from tacit.simulation.api import MOST_EPISODES, MOST_SEEDS
from tacit.validate import integer, number
from tacit_lab.sweep.task import Named

CHOOSING_SEEDS_FROM = 1_000_000
"""Where the root seeds of ``[choose]`` start when only their number is given."""

COMING = ("participations", "teaches", "period", "apart", "people", "attendance")
"""How people come back: each may be an axis; as the options of ``tacit run`` are called."""

_RUN = ("problems", "agents", "epsilon", "delta", "calibration", "episodes", "seeds", "reveal")
_CASE = (*_RUN, *COMING)
_TOP = (*_CASE, "checkpoints", "modules", "cases", "choose")
_CHOOSE = ("parameter", "candidates", "seeds", "agents")


@dataclass(frozen=True)
class SweepCase:
    """What is crossed with each other.

    Attributes:
        problems: names and parameters; a parameter that is a list is an axis.
        agents: likewise.
        privacy: values of epsilon, delta and calibration, for agents that take them.
        episodes: numbers of users.
        seeds: root seeds.
        reveal: facts told to the learners.
        coming: values of how people come back, by name.
    """

    problems: tuple[Named, ...]
    agents: tuple[Named, ...]
    privacy: Mapping[str, tuple[Any, ...]]
    episodes: tuple[int, ...]
    seeds: tuple[int, ...]
    reveal: tuple[str, ...]
    coming: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Choose:
    """A parameter chosen by its mean final regret on seeds that are not reported.

    Attributes:
        parameter: of the agent, for example ``bonus_scale``.
        candidates: its values.
        seeds: root seeds used for choosing only.
        agents: whose parameter; None for every agent that has it and does not fix it.
    """

    parameter: str
    candidates: tuple[Any, ...]
    seeds: tuple[int, ...]
    agents: tuple[str, ...] | None


@dataclass(frozen=True)
class Spec:
    """A sweep that was read and looks right.

    Attributes:
        name: of the file, without its ending.
        text: the file as it was written.
        folder: where it lies; modules are looked for there as well.
        modules: imported before anything runs: they may register agents and problems.
        checkpoints: "log", or n to record every n-th episode.
        cases: what is crossed.
        choose: what is chosen first, if anything.
    """

    name: str
    text: str
    folder: Path
    modules: tuple[str, ...]
    checkpoints: int | str
    cases: tuple[SweepCase, ...]
    choose: Choose | None


def read(path: Path) -> Spec:
    """Read a spec from a file."""
    try:
        text = path.read_text()
    except OSError as error:
        raise InvalidInput(
            f"cannot read {path}: {error.strerror}; tacit sweep {path} --init writes an example"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not a text file in UTF-8") from None
    return parse(text, path)


def parse(text: str, path: Path) -> Spec:
    """Read a spec from its text; ``path`` names it in messages."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{path} is not valid TOML: {error}") from None
    try:
        return _spec(data, text, path)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def _spec(data: Mapping[str, Any], text: str, path: Path) -> Spec:
    _known(data, _TOP, "the top level")
    cases = _tables(data.get("cases", [{}]), "cases")
    for case in cases:
        _known(case, _CASE, "a case")
    read = tuple(_case({**{k: data[k] for k in _CASE if k in data}, **case}) for case in cases)
    if not read:
        raise InvalidInput("cases = [], but an empty list runs nothing; leave it out")
    choose = _choose(data["choose"], read) if "choose" in data else None
    every = data.get("checkpoints", "log")
    return Spec(
        name=path.stem,
        text=text,
        folder=path.resolve().parent,
        modules=tuple(_words(data.get("modules", []), "modules")),
        checkpoints=every if every == "log" else integer(every, "checkpoints", low=1),
        cases=read,
        choose=choose,
    )


def _case(data: Mapping[str, Any]) -> SweepCase:
    for key in ("problems", "agents", "episodes"):
        if key not in data:
            raise InvalidInput(f"{key} is missing: say what is to be run")
    idle = [key for key in COMING if key in data]
    if idle and "participations" not in data and "period" not in data:
        raise InvalidInput(
            f"{idle[0]} is about people who come back: say how often one person may take part, as "
            "in participations = 30, or leave it out"
        )
    privacy = {
        key: tuple(check(value, key) for value in axis(data[key], key))
        for key, check in _PRIVACY.items()
        if key in data
    }
    return SweepCase(
        problems=_named(data["problems"], "problems"),
        agents=_named(data["agents"], "agents"),
        privacy=privacy,
        episodes=tuple(
            integer(value, "episodes", low=1, high=MOST_EPISODES)
            for value in axis(data["episodes"], "episodes")
        ),
        seeds=_seeds(data.get("seeds", 4), 0, "seeds"),
        reveal=tuple(sorted(_words(data.get("reveal", []), "reveal"))),
        coming={key: tuple(axis(data[key], key)) for key in COMING if key in data},
    )


def _choose(data: Any, cases: Iterable[SweepCase]) -> Choose:
    if not isinstance(data, dict):
        raise InvalidInput("choose must be a table: write [choose] and its keys below it")
    _known(data, _CHOOSE, "[choose]")
    for key in ("parameter", "candidates"):
        if key not in data:
            raise InvalidInput(f"[choose] needs {key}")
    seeds = _seeds(data.get("seeds", 4), CHOOSING_SEEDS_FROM, "choose.seeds")
    shared = sorted(set(seeds) & {seed for case in cases for seed in case.seeds})
    if shared:
        raise InvalidInput(
            f"choose.seeds and seeds share {shared[0]}, but what is chosen on a seed must not be "
            "reported on it; take other seeds for one of them"
        )
    candidates = axis(data["candidates"], "choose.candidates")
    if len(candidates) < 2:
        raise InvalidInput("choose.candidates has one value: set the parameter itself instead")
    return Choose(
        parameter=_word(data["parameter"], "choose.parameter"),
        candidates=tuple(candidates),
        seeds=seeds,
        agents=tuple(_words(data["agents"], "choose.agents")) if "agents" in data else None,
    )


def axis(value: Any, name: str) -> list[Any]:
    """The values of an axis: the items of a list, or the value alone."""
    if not isinstance(value, list):
        return [value]
    if not value:
        raise InvalidInput(f"{name} = [], but an empty list runs nothing; leave it out")
    return value


def _named(value: Any, name: str) -> tuple[Named, ...]:
    found = []
    for item in axis(value, name):
        table = {"name": item} if isinstance(item, str) else item
        if not isinstance(table, dict) or not isinstance(table.get("name"), str):
            raise InvalidInput(
                f"{name} holds {item!r}, but it must be a name, or a table with a name"
            )
        parameters = {key.replace("-", "_"): v for key, v in table.items() if key != "name"}
        found.append(Named(table["name"], parameters))
    return tuple(found)


def _seeds(value: Any, start: int, name: str) -> tuple[int, ...]:
    """A number n means n seeds from ``start``; a list means these."""
    if isinstance(value, list):
        seeds = [integer(seed, name, low=0, high=2**63 - 1) for seed in axis(value, name)]
        if len(set(seeds)) < len(seeds):
            raise InvalidInput(f"{name} lists a seed twice")
        return tuple(seeds)
    return tuple(range(start, start + integer(value, name, low=1, high=MOST_SEEDS)))


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} = {value!r}, but it must be a word")
    return value


def _words(value: Any, name: str) -> list[str]:
    return [_word(item, name) for item in (value if isinstance(value, list) else [value])]


_PRIVACY: Mapping[str, Callable[[Any, str], Any]] = {
    "epsilon": partial(number, low=0.0, low_open=True),
    "delta": partial(number, low=0.0, high=1.0, high_open=True),
    "calibration": _word,
}


def _tables(value: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InvalidInput(f"{name} must be a list of tables: write [[{name}]] above each")
    return value


def _known(data: Mapping[str, Any], keys: Iterable[str], where: str) -> None:
    for key in data:
        if key not in keys:
            raise InvalidInput(f"{where} has no key {key!r}{suggestion(key, keys)}")
