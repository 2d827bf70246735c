"""What is typed: the options that commands share, numbers as people write them, KEY=VALUE groups.

Facts come in four groups that are written the same way: ``-P`` of the problem, ``-A`` of the agent,
``-R`` of people who come back, ``-E`` of an environment that is played.
"""

from __future__ import annotations

import inspect
import json
import os
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union

import typer

from tacit.errors import InvalidInput, suggestion

if TYPE_CHECKING:
    from tacit.agents.base import Agent
    from tacit.experiment_spec import Named
    from tacit.problems.base import Problem
    from tacit.simulation.attendance import Attendance
    from tacit.task.participation import Participation
    from tacit.util.registry import Registered

N = TypeVar("N")
K = TypeVar("K")

_YES, _NO = ("true", "yes", "on"), ("false", "no", "off")


class Unreadable(typer.BadParameter):
    """What was typed is not a number; the option's name is added by typer."""

    def format_message(self) -> str:
        """The whole sentence."""
        name = "" if self.param is None else self.param.metavar or ""
        if self.param is not None and self.param.opts[0].startswith("-"):
            name = self.param.opts[0]
        return f"{name.strip('[]')} = {self.message}"


def whole(text: str | int) -> int:
    """A whole number; 1e5 is one."""
    return _attempt(text, _integer, "a whole number")


def real(text: str | float) -> float:
    """A number; 1/6 is one."""
    return _attempt(text, _fraction, "a number")


def several(text: str, option: str, read: Callable[[str], N]) -> list[N]:
    """Values after an option, with commas between them."""
    try:
        return [read(part) for part in text.split(",")]
    except Unreadable as error:
        raise InvalidInput(f"{option} = {error.message}") from None


def _attempt(text: Any, convert: Callable[[str], N], expected: str) -> N:
    try:
        return convert(str(text))
    except (ValueError, OverflowError, ZeroDivisionError):
        raise Unreadable(f"{text!r}, but it must be {expected}") from None


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)


def _fraction(text: str) -> float:
    above, slash, below = text.partition("/")
    return float(above) / float(below) if slash else float(text)


def one_of(*words: str) -> Callable[[str], str]:
    """Reads one of a few words."""

    def read(text: str) -> str:
        if text not in words:
            raise Unreadable(f"{text!r}, but it must be one of {', '.join(words)}")
        return text

    return read


def log_or_whole(text: str | int) -> str | int:
    """The word log, or a whole number."""
    return "log" if text == "log" else whole(text)


def any_or_whole(text: str | int) -> str | int:
    """The word any, or a whole number."""
    return "any" if text == "any" else _attempt(text, _integer, "a whole number, or any")


def length(text: str | float) -> float:
    """Seconds, as a number or with a unit."""

    def convert(text: str) -> float:
        from tacit.util.durations import seconds

        return seconds(text if text[-1:].isalpha() else float(text), "")

    return _attempt(text, convert, 'seconds, or text like "90s", "5m", "20h", "30d"')


def command(kind: type[K]) -> Callable[[Callable[[K], None]], Callable[..., None]]:
    """A command whose arguments and options are the fields of a dataclass."""
    hints, fields = typing.get_type_hints(kind, include_extras=True), inspect.signature(kind)
    parameters = [p.replace(annotation=hints[p.name]) for p in fields.parameters.values()]

    def of(work: Callable[[K], None]) -> Callable[..., None]:
        def call(**values: Any) -> None:
            work(kind(**values))

        call.__doc__, call.__name__ = work.__doc__, work.__name__
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return call

    return of


def argument(metavar: str, help: str, default: Any = ...) -> Any:
    """What has no flag; required unless there is a default."""
    return typer.Argument(default, metavar=metavar, help=help)


def option(
    help: str,
    panel: str | None = None,
    metavar: str | None = None,
    parser: Callable[[str], Any] | None = None,
    default: Any = ...,
) -> Any:
    """An option: its sentence, the group it is shown in, how its value is written and read.

    What is annotated with it has its default beside it; a field that is one has it here.
    """
    return typer.Option(default, metavar=metavar, parser=parser, help=help, rich_help_panel=panel)


def count(help: str, panel: str | None = None, default: Any = ...) -> Any:
    """An option that takes a whole number."""
    return option(help, panel, "N", whole, default)


def number(help: str, panel: str | None = None, default: Any = ...) -> Any:
    """An option that takes any number."""
    return option(help, panel, "NUMBER", real, default)


def pairs(name: str, help: str, panel: str | None = "Facts") -> Any:
    """An option of KEY=VALUE, which may be given many times."""
    return typer.Option(name, metavar="KEY=VALUE", help=help, rich_help_panel=panel)


def file(help: str, panel: str | None = "Output", metavar: str = "FILE") -> Any:
    """An option that takes a path."""
    return option(help, panel, metavar)


def path(help: str, panel: str = "Output", metavar: str = "FILE", default: Any = None) -> Any:
    """A field that takes a path, or none."""
    return option(help, panel, metavar, None, default)


def flag(name: str, help: str, panel: str | None = None) -> Any:
    """An option that takes nothing."""
    return typer.Option(name, help=help, rich_help_panel=panel)


def switch(name: str, help: str, panel: str | None = None) -> Any:
    """A field that takes nothing."""
    return typer.Option(False, name, help=help, rich_help_panel=panel)


def word(help: str, *words: str, metavar: str = "WORD") -> Any:
    """An option that takes one of a few words."""
    return option(help, None, metavar, one_of(*words))


Pairs = list[str] | None
_PROBLEM = argument("PROBLEM", "A name (tacit list problems), gym:ID, play:ID or FILE.py:NAME.")
_AGENT = argument("AGENT", "See: tacit list agents")
ProblemName = Annotated[str, _PROBLEM]
AgentName = Annotated[str, _AGENT]
OptionalProblem = Annotated[str | None, _PROBLEM]
OptionalAgent = Annotated[str | None, _AGENT]
ProblemFacts = Annotated[Pairs, pairs("-P", "Of the problem, e.g. states=6.")]
AgentFacts = Annotated[Pairs, pairs("-A", "Of the agent, e.g. calibration=paper.")]
_RULE = "Of people who come back: participations, teaches, period, apart"
RuleFacts = Annotated[Pairs, pairs("-R", f"{_RULE}.")]
ReturnFacts = Annotated[Pairs, pairs("-R", f"{_RULE}, people, law.")]
_PLAYED = "Of what is played: rewards, returns, horizon, states, actions, bins."
EnvironmentFacts = Annotated[Pairs, pairs("-E", _PLAYED)]
Epsilon = Annotated[float | None, number("Privacy asked for (private agents only).", panel="Facts")]
Delta = Annotated[float | None, number("Likewise.", panel="Facts")]
_EPISODES = "Users, one episode each; where people come back, participations."
Episodes = Annotated[int, count(_EPISODES, "Size")]
Seed = Annotated[int, count("Root of the random streams.", "Size")]
Workers = Annotated[int | None, count("Threads (default: one per core).")]
Processes = Annotated[int | None, count("Local processes (default: one per core).")]
Reveal = Annotated[Pairs, option("Fact told to the learner, e.g. reward.", "Facts", "FACT")]
Plot = Annotated[Path | None, file("Draw it into a file.")]
Json = Annotated[bool, flag("--json", "Print one JSON object and nothing else.", "Output")]
DeploymentFile = Annotated[Path, argument("DEPLOYMENT", "TOML file; --init of serve writes one.")]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """An agent in a problem that has a known truth, and how often people take part."""

    problem: ProblemName
    agent: AgentName
    problem_facts: ProblemFacts = None
    agent_facts: AgentFacts = None
    epsilon: Epsilon = None
    delta: Delta = None
    return_facts: RuleFacts = None

    def chosen(self) -> tuple[Problem, Agent, Participation]:
        """All three."""
        problem = chosen_problem(self.problem, self.agent, self.problem_facts)
        agent = chosen_agent(self.agent, self.agent_facts, self.epsilon, self.delta)
        return problem, agent, coming(self.return_facts, RULE)[0]


def named_problem(name: str, agent: str, facts: Pairs) -> Named:
    """A problem by its name, with what ``-P`` says of it."""
    from tacit.experiment import refuse_swapped
    from tacit.experiment_spec import Named
    from tacit.problems.catalogue import problem_entry
    from tacit.problems.environment import FILE, can_only_be_played

    refuse_swapped(name, agent)
    texts = assignments(facts or (), "-P")
    if FILE in name:
        path, _, wanted = name.rpartition(":")
        return Named(f"{Path(path).resolve()}:{wanted}", dict(texts))
    if can_only_be_played(name):
        return Named(name, {key: read(text, key, Any) for key, text in texts.items()})
    return Named(name, read_parameters(problem_entry(name), texts))


def named_agent(
    name: str, facts: Pairs, epsilon: float | None = None, delta: float | None = None
) -> Named:
    """An agent by its name, with what ``-A`` and the privacy options say of it."""
    from tacit.agents.catalogue import agents
    from tacit.experiment_spec import Named

    parameters = read_parameters(agents.entry(name), assignments(facts or (), "-A"))
    for option, value in (("epsilon", epsilon), ("delta", delta)):
        if value is not None and option in parameters:
            raise InvalidInput(f"{option} is given twice: by -A and by --{option}")
        if value is not None:
            parameters[option] = value
    return Named(name, parameters)


def chosen_problem(name: str, agent: str, facts: Pairs) -> Problem:
    """The problem itself; it must have a known truth."""
    from tacit.problems.catalogue import make_problem
    from tacit.problems.environment import FILE

    named = named_problem(name, agent, facts)
    if name.startswith("play:") or FILE in name:
        raise InvalidInput(
            f"{name} can only be played: this asks for a problem with a known truth "
            "(tacit list problems); tacit run plays it"
        )
    return make_problem(named.name, **named.parameters)


def chosen_agent(
    name: str, facts: Pairs, epsilon: float | None = None, delta: float | None = None
) -> Agent:
    """The agent itself."""
    from tacit.agents.catalogue import make_agent

    named = named_agent(name, facts, epsilon, delta)
    return make_agent(named.name, **named.parameters)


def _people(text: str) -> int:
    from tacit.validate import integer

    return integer(whole(text), "people", low=1)


RULE: dict[str, Callable[[str], Any]] = {
    "participations": any_or_whole,
    "teaches": one_of("first", "lifetime", "every"),
    "period": length,
    "apart": length,
}
"""How often one person may take part, and which of the times teach: what ``-R`` takes."""

LAW: dict[str, Callable[[str], Any]] = {"people": _people, "law": str}
"""How many people come back, and how: what ``-R`` takes besides where they are simulated."""


def facts(group: Pairs, flag: str, known: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    """A group of facts; keys that nobody knows are refused with a suggestion."""
    values = {}
    for key, text in assignments(group or (), flag).items():
        if key not in known:
            raise InvalidInput(f"{flag} has no {key!r}{suggestion(key, known)}")
        try:
            values[key] = known[key](text)
        except Unreadable as error:
            raise InvalidInput(f"{flag} {key} = {error.message}") from None
    return values


def coming(
    group: Pairs, known: Mapping[str, Callable[[str], Any]] = RULE | LAW
) -> tuple[Participation, Attendance]:
    """How often one person may take part, and who comes back when, from ``-R``."""
    from tacit.simulation.attendance import Attendance
    from tacit.task.participation import Participation

    values = facts(group, "-R", known)
    attendance = Attendance(values.pop("law", None), values.pop("people", None))
    return Participation(values.pop("participations", 1), **values), attendance


def _range(text: str) -> tuple[float, float]:
    low, _, high = text.partition(",")
    try:
        return real(low), real(high)
    except Unreadable:
        raise Unreadable(f"{text!r}, but it must be the least and the largest, as 0,1") from None


def _cuts(text: str) -> Any:
    expected = (
        "like [1, 1, [-0.1, 0, 0.1], 10]: for every coordinate a number of cells or the edges "
        "between them"
    )
    return _attempt(text, json.loads, expected)


PLAYED: dict[str, Callable[[str], Any]] = {
    "rewards": _range,
    "returns": _range,
    "horizon": whole,
    "states": whole,
    "actions": whole,
    "bins": _cuts,
}
"""What is public about an environment that is played: what ``-E`` takes."""


def cores(asked: int | None) -> int:
    """The number after ``--workers``; one per core unless given."""
    from tacit.validate import integer

    if asked is None:
        return os.cpu_count() or 1
    return integer(asked, "--workers", low=1, high=1024)


def write_new(path: Path, text: str) -> None:
    """Write a file to start from, never over one that is there."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidInput(
            f"{path} is there already and was left alone; choose another name"
        ) from None


def assignments(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """Split ``key=value`` strings; a key given twice is a mistake.

    >>> assignments(["states=4", "kernel=vtr"], "-P")
    {'states': '4', 'kernel': 'vtr'}
    """
    read: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key:
            raise InvalidInput(f"{flag} {pair!r}, but it must look like {flag} name=value")
        if key in read:
            raise InvalidInput(f"{flag} {key} is given twice")
        read[key] = value.strip()
    return read


def read_parameters(entry: Registered[Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Parameters of an entry, from text; unknown names are refused with a suggestion."""
    takes = entry.parameters
    entry.check({**dict.fromkeys(takes), **texts})  # what is missing may come by another way
    return {
        name: read(text, name, takes[name].annotation if name in takes else Any)
        for name, text in texts.items()
    }


def read(text: str, name: str, annotation: Any) -> Any:
    """One value, as the annotation says; where it says nothing, as it looks."""
    if typing.get_origin(annotation) in (Union, types.UnionType):
        options = typing.get_args(annotation)
        if type(None) in options and text.lower() == "none":
            return None
        annotation = next(option for option in options if option is not type(None))
    if annotation is str or typing.get_origin(annotation) is Literal:
        return text
    converters: dict[Any, Callable[[str], Any]] = {bool: _boolean, int: whole, float: real}
    try:
        return converters.get(annotation, _guess)(text)
    except Unreadable as error:
        raise InvalidInput(f"{name} = {error.message}") from None


def _boolean(text: str) -> bool:
    if text.lower() not in _YES + _NO:
        raise Unreadable(f"{text!r}, but it must be true or false")
    return text.lower() in _YES


def _guess(text: str) -> Any:
    for convert in (_boolean, whole, real):
        try:
            return convert(text)
        except Unreadable:
            continue
    return text
