"""A sweep as a person writes it: a TOML file in which every list is an axis; and what it plans.

Top-level keys are crossed with each other; ``[[cases]]`` are crossed each on its own, and take what
they do not say from the top level. ``[choose]`` names a parameter that is chosen on seeds of its
own before anything is reported. See ``tacit sweep --init`` for an example with comments.

Agents that are not private take no epsilon, delta or calibration: they appear once, not once per
value. A purely epsilon-private agent that refuses a delta appears without one. Where people take
part once, nothing else about how they come back makes a difference: that appears once as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from tacit.agents.catalogue import PRIVACY_PARAMETERS, agents, make_agent
from tacit.config import anything, key, keys, read_text, read_toml, section, unknown
from tacit.errors import InvalidInput
from tacit.experiment import MOST_EPISODES, MOST_RUNS
from tacit.experiment_spec import ExperimentSpec, Modules, Named, returning
from tacit.problems.catalogue import make_problem, problem_entry
from tacit.util.registry import Registered
from tacit.validate import integer, number
from tacit_lab.sweep.task import SweepTask

CHOOSING_SEEDS_FROM = 1_000_000
"""Where the root seeds of ``[choose]`` start when only their number is given."""

COMING = ("participations", "teaches", "period", "apart", "people", "attendance")
"""How people come back: each may be an axis; as the options of ``tacit run`` are called."""

_CHOOSING = tuple(range(CHOOSING_SEEDS_FROM, CHOOSING_SEEDS_FROM + 4))

_PRIVACY = ("epsilon", "delta", "calibration")


def axis(value: Any, name: str) -> list[Any]:
    """The values of an axis: the items of a list, or the value alone."""
    if not isinstance(value, list):
        return [value]
    if not value:
        raise InvalidInput(f"{name} = [], but an empty list runs nothing; leave it out")
    return value


def _each(value: Any, name: str, *, of: Callable[..., Any], **bounds: Any) -> tuple[Any, ...]:
    return tuple(of(item, name, **bounds) for item in axis(value, name))


def _named(item: Any, name: str) -> Named:
    table = {"name": item} if isinstance(item, str) else item
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise InvalidInput(f"{name} holds {item!r}, but it must be a name, or a table with a name")
    parameters = {name.replace("-", "_"): v for name, v in table.items() if name != "name"}
    return Named(table["name"], parameters)


def _seeds(value: Any, name: str, *, start: int) -> tuple[int, ...]:
    """A number n means n seeds from ``start``; a list means these."""
    if isinstance(value, list):
        seeds = [integer(seed, name, low=0, high=2**63 - 1) for seed in axis(value, name)]
        if len(set(seeds)) < len(seeds):
            raise InvalidInput(f"{name} lists a seed twice")
        return tuple(seeds)
    return tuple(range(start, start + integer(value, name, low=1, high=MOST_RUNS)))


def _word(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{name} = {value!r}, but it must be a word")
    return value


def _words(value: Any, name: str) -> tuple[str, ...]:
    return tuple(_word(item, name) for item in (value if isinstance(value, list) else [value]))


def _candidates(value: Any, name: str) -> tuple[Any, ...]:
    if len(axis(value, name)) < 2:
        raise InvalidInput(f"{name} has one value: set the parameter itself instead")
    return tuple(value)


_MISSING = "{key} is missing: say what is to be run"


@dataclass(frozen=True, kw_only=True)
class SweepCase:
    """What is crossed with each other.

    Attributes:
        problems: names and parameters; a parameter that is a list is an axis.
        agents: likewise.
        epsilon: values for agents that take them; likewise delta and calibration.
        episodes: numbers of users.
        seeds: root seeds.
        reveal: facts told to the learners.
        participations: how often one person may take part; the rest says how they come back.
    """

    problems: tuple[Named, ...] = key(_each, of=_named, missing=_MISSING)
    agents: tuple[Named, ...] = key(_each, of=_named, missing=_MISSING)
    epsilon: tuple[float, ...] = key(_each, default=(), of=number, low=0.0, low_open=True)
    delta: tuple[float, ...] = key(_each, default=(), of=number, low=0.0, high=1.0, high_open=True)
    calibration: tuple[str, ...] = key(_each, default=(), of=_word)
    episodes: tuple[int, ...] = key(_each, missing=_MISSING, of=integer, low=1, high=MOST_EPISODES)
    seeds: tuple[int, ...] = key(_seeds, default=tuple(range(4)), start=0)
    reveal: tuple[str, ...] = key(_words, default=())
    participations: tuple[Any, ...] = key(_each, default=(), of=anything)
    teaches: tuple[Any, ...] = key(_each, default=(), of=anything)
    period: tuple[Any, ...] = key(_each, default=(), of=anything)
    apart: tuple[Any, ...] = key(_each, default=(), of=anything)
    people: tuple[Any, ...] = key(_each, default=(), of=anything)
    attendance: tuple[Any, ...] = key(_each, default=(), of=anything)

    def axes(self, names: Iterable[str]) -> dict[str, list[Any]]:
        """The axes of these names that the file gives."""
        return {name: [*values] for name in names if (values := getattr(self, name))}


@dataclass(frozen=True)
class Choose:
    """A parameter chosen by its mean final regret on seeds that are not reported.

    Attributes:
        parameter: of the agent, for example ``bonus_scale``.
        candidates: its values.
        seeds: root seeds used for choosing only.
        agents: whose parameter; None for every agent that has it and does not fix it.
    """

    parameter: str = key(_word, missing="{where} needs {key}")
    candidates: tuple[Any, ...] = key(_candidates, missing="{where} needs {key}")
    seeds: tuple[int, ...] = key(_seeds, default=_CHOOSING, start=CHOOSING_SEEDS_FROM)
    agents: tuple[str, ...] | None = key(_words, default=None)


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
    hint = f"tacit sweep {path} --init writes an example"
    return parse(read_text(path, f"cannot read {path}: No such file or directory; {hint}"), path)


def parse(text: str, path: Path) -> Spec:
    """Read a spec from its text; ``path`` names it in messages."""
    try:
        return _spec(read_toml(text), text, path)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None


def _spec(data: Mapping[str, Any], text: str, path: Path) -> Spec:
    known = keys(SweepCase)
    wrong = unknown(data, (*known, "checkpoints", "modules", "cases", "choose"), "the top level")
    cases = data.get("cases", [{}])
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise InvalidInput("cases must be a list of tables: write [[cases]] above each")
    wrong += [one for case in axis(cases, "cases") for one in unknown(case, known, "a case")]
    if wrong:
        raise InvalidInput(wrong[0])
    shared = {name: value for name, value in data.items() if name in known}
    read = tuple(_case({**shared, **case}) for case in cases)
    every = data.get("checkpoints", "log")
    return Spec(
        name=path.stem,
        text=text,
        folder=path.resolve().parent,
        modules=_words(data.get("modules", []), "modules"),
        checkpoints=every if every == "log" else integer(every, "checkpoints", low=1),
        cases=read,
        choose=_choose(data["choose"], read) if "choose" in data else None,
    )


def _case(data: Mapping[str, Any]) -> SweepCase:
    case = section(SweepCase, data, "a case", named="{key}")
    idle = case.axes(COMING)
    if idle and not case.participations and not case.period:
        raise InvalidInput(
            f"{next(iter(idle))} is about people who come back: say how often one person may take "
            "part, as in participations = 30, or leave it out"
        )
    return case


def _choose(data: Any, cases: Iterable[SweepCase]) -> Choose:
    choose = section(Choose, data, "[choose]", named="choose.{key}")
    shared = sorted(set(choose.seeds) & {seed for case in cases for seed in case.seeds})
    if shared:
        raise InvalidInput(
            f"choose.seeds and seeds share {shared[0]}, but what is chosen on a seed must not be "
            "reported on it; take other seeds for one of them"
        )
    return choose


@dataclass(frozen=True)
class Planned:
    """A configuration and the seeds it is reported on.

    Attributes:
        configuration: without the parameter that is still to be chosen, if there is one.
        seeds: root seeds, whether finished or not.
        choose: how that parameter is to be chosen.
        candidates: the configuration with each candidate of it.
        chosen: how the parameter was chosen, for the manifest.
    """

    configuration: ExperimentSpec
    seeds: tuple[int, ...] = ()
    choose: Choose | None = None
    candidates: tuple[ExperimentSpec, ...] = ()
    chosen: Mapping[str, Any] | None = None

    def tasks(self) -> list[SweepTask]:
        """What is reported, in the order of the seeds."""
        return [SweepTask(self.configuration.at(seed)) for seed in self.seeds]

    def choosing(self) -> list[SweepTask]:
        """What must be run before a value can be chosen."""
        seeds = () if self.choose is None else self.choose.seeds
        return [SweepTask(c.at(seed)) for seed in seeds for c in self.candidates]


def plan(spec: Spec) -> list[Planned]:
    """All configurations of a sweep in the order of its file, each of them once."""
    modules = Modules.find(spec.folder, spec.modules)
    plans: dict[str, Planned] = {}
    for case in spec.cases:
        for configuration in _cross(case):
            full = replace(configuration, checkpoints=spec.checkpoints, modules=modules)
            planned = plans.get(full.key) or _planned(full, spec)
            seeds = tuple(dict.fromkeys((*planned.seeds, *case.seeds)))
            plans[full.key] = replace(planned, seeds=seeds)
    _check_choice(spec, list(plans.values()))
    return list(plans.values())


def _cross(case: SweepCase) -> Iterator[ExperimentSpec]:
    problems = [problem for entry in case.problems for problem in _problems(entry)]
    learners = [agent for entry in case.agents for agent in _agents(entry, case.axes(_PRIVACY))]
    habits = [returning(values) for values in _product(case.axes(COMING))]
    crossed = itertools.product(problems, case.episodes, habits, learners)
    for problem, episodes, (rule, how), agent in crossed:
        yield ExperimentSpec(
            problem=problem,
            agent=agent,
            episodes=episodes,
            reveal=tuple(sorted(case.reveal)),
            participation=rule,
            attendance=how,
        )


def _problems(named: Named) -> Iterator[Named]:
    entry = problem_entry(named.name)
    for parameters in _product(named.parameters):
        typed = _typed(entry, parameters)
        make_problem(named.name, **typed)
        yield Named(named.name, typed)


def _agents(named: Named, privacy: Mapping[str, list[Any]]) -> Iterator[Named]:
    entry = agents.entry(named.name)
    missing = {
        name: values
        for name, values in privacy.items()
        if name in entry.parameters and name not in named.parameters
    }
    seen = []
    for parameters in _product({**missing, **named.parameters}):
        typed = _without_useless_delta(named.name, _typed(entry, parameters), "delta" in missing)
        if typed not in seen:
            seen.append(typed)
            yield Named(named.name, typed)


def _without_useless_delta(name: str, parameters: dict[str, Any], shared: bool) -> dict[str, Any]:
    """Parameters with which the agent can be made; a shared delta is left out if it refuses one."""
    less = {key: value for key, value in parameters.items() if key != "delta"}
    try:
        make_agent(name, **parameters)
    except InvalidInput:
        if shared and less != parameters:
            with suppress(InvalidInput):
                make_agent(name, **less)
                return less
        raise
    return parameters


def _product(parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    axes = [axis(value, name) for name, value in parameters.items()]
    for values in itertools.product(*axes):
        yield dict(zip(parameters, values, strict=True))


def _typed(entry: Registered[Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``1`` where a number is declared means 1.0, and 1e3 where a whole one is means 1000."""
    takes = entry.parameters
    return {
        name: _number(value, takes[name].annotation if name in takes else None)
        for name, value in parameters.items()
    }


def _number(value: Any, annotation: Any) -> Any:
    kinds = (annotation, *get_args(annotation))
    if float in kinds and type(value) is int:
        return float(value)
    if int in kinds and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _planned(configuration: ExperimentSpec, spec: Spec) -> Planned:
    """How a configuration is run, its seeds apart."""
    choose, agent = spec.choose, configuration.agent
    entry = agents.entry(agent.name)
    if (
        choose is None
        or (choose.agents is not None and agent.name not in choose.agents)
        or choose.parameter not in entry.parameters
        or choose.parameter in agent.parameters
    ):
        return Planned(configuration)
    candidates = []
    for value in choose.candidates:
        typed = _typed(entry, {**agent.parameters, choose.parameter: value})
        make_agent(agent.name, **typed)
        candidates.append(replace(configuration, agent=Named(agent.name, typed)))
    return Planned(configuration, (), choose, tuple(candidates))


def _check_choice(spec: Spec, planned: list[Planned]) -> None:
    choose = spec.choose
    if choose is None:
        return
    if choose.parameter in PRIVACY_PARAMETERS:
        raise InvalidInput(
            f"choose.parameter = {choose.parameter!r}, but privacy is asked for, not chosen by "
            "regret; list its values as an axis instead"
        )
    chosen = {item.configuration.agent.name for item in planned if item.candidates}
    lacking = sorted(set(choose.agents or ()) - chosen)
    if lacking or not chosen:
        who = ", ".join(lacking) or "any agent of the sweep"
        raise InvalidInput(
            f"[choose] finds nothing to choose for {who}: it has no parameter "
            f"{choose.parameter!r}, or the file already sets it, or it is not in the sweep"
        )
