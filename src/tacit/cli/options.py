"""What is typed: the options that commands share, numbers as people write them, and -P and -A.

:class:`Case` is the group of options that says which agent learns which problem, :class:`Rule` the
one that says how often one person may take part, :class:`Coming` also who comes back when;
``on_case`` and ``grouped`` let a command take a whole group as one argument.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typer

from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.agents.base import Agent
    from tacit.problems.base import Problem
    from tacit.task.participation import Participation
    from tacit.util.registry import Registered

N = TypeVar("N")

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


def count(help: str) -> Any:
    """An option that takes a whole number."""
    return typer.Option(metavar="N", parser=whole, help=help)


def number(help: str) -> Any:
    """An option that takes any number."""
    return typer.Option(metavar="NUMBER", parser=real, help=help)


ProblemName = Annotated[str, typer.Argument(metavar="PROBLEM", help="See: tacit list problems")]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="See: tacit list agents")]
Pairs = list[str] | None
Privacy = Annotated[float | None, number("Privacy asked for (private agents only).")]
Episodes = Annotated[int, count("Users, one episode each.")]
Seed = Annotated[int, count("Root of the random streams.")]
Workers = Annotated[int | None, count("Threads (default: one per core).")]
Processes = Annotated[int | None, count("Local processes (default: one per core).")]
Reveal = Annotated[
    list[str] | None, typer.Option(metavar="FACT", help="Fact told to the learner, e.g. reward.")
]
Participations = Annotated[
    Any,
    typer.Option(
        metavar="N|any",
        parser=any_or_whole,
        help="How often one person may take part; the guarantee covers all of them (of a period).",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
DeploymentFile = Annotated[
    Path, typer.Argument(metavar="DEPLOYMENT", help="TOML file; --init of serve writes one.")
]


@dataclass(frozen=True)
class Case:
    """Which problem, which agent, and how private: what most commands begin with."""

    problem_name: ProblemName
    agent_name: AgentName
    problem_parameters: Annotated[
        Pairs, typer.Option("-P", metavar="KEY=VALUE", help="Problem parameter.")
    ] = None
    agent_parameters: Annotated[
        Pairs, typer.Option("-A", metavar="KEY=VALUE", help="Agent parameter.")
    ] = None
    epsilon: Privacy = None
    delta: Privacy = None
    calibration: Annotated[
        str | None, typer.Option(metavar="WORD", help="tight or paper (agents that have both).")
    ] = None

    def problem(self) -> Problem:
        """The problem, from its name and ``-P`` pairs."""
        from tacit.forecast import in_order
        from tacit.problems.catalogue import make_problem, problem_entry

        in_order(self.problem_name, self.agent_name)
        texts = assignments(self.problem_parameters or (), "-P")
        parameters = read_parameters(problem_entry(self.problem_name), texts)
        return make_problem(self.problem_name, **parameters)

    def agent(self) -> Agent:
        """The agent, from its name, ``-A`` pairs and the privacy options that were given."""
        from tacit.agents.catalogue import PRIVACY_PARAMETERS, agents, make_agent

        texts = assignments(self.agent_parameters or (), "-A")
        parameters = read_parameters(agents.entry(self.agent_name), texts)
        for option in PRIVACY_PARAMETERS:
            value = getattr(self, option)
            if value is not None and option in parameters:
                raise InvalidInput(f"{option} is given twice: by -A and by --{option}")
            if value is not None:
                parameters[option] = value
        return make_agent(self.agent_name, **parameters)


@dataclass(frozen=True)
class Rule:
    """How often one person may take part, and which of the times teach."""

    participations: Participations = 1
    teaches: Annotated[
        str | None,
        typer.Option(
            metavar="WORD",
            parser=one_of("first", "lifetime", "every"),
            help="Which of them are counted: first (of a period), lifetime (all, bounded together "
            "as one) or every (each in full); by default as the agent does it.",
        ),
    ] = None
    period: Annotated[
        Any,
        typer.Option(
            metavar="30d",
            parser=length,
            show_default=False,
            help="After this time budgets are renewed (default: never).",
        ),
    ] = 0.0
    apart: Annotated[
        Any,
        typer.Option(
            metavar="20h",
            parser=length,
            show_default=False,
            help="Least time from one to the next (default: none).",
        ),
    ] = 0.0

    def rule(self) -> Participation:
        """The rule of the task."""
        from tacit.task.participation import Participation

        return Participation(self.participations, self.teaches, self.apart, self.period)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Coming(Rule):
    """The rule, and who comes back when in a simulation."""

    people: Annotated[
        int | None, count("How many different people come (default: as few as the rule allows).")
    ] = None
    attendance: Annotated[
        str | None,
        typer.Option(metavar="LAW", help="How they come back (rounds). See: tacit list attendance"),
    ] = None


def on_case(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes a case as its first argument be called with the case's options.

    A command that can go on with something (``resume``) need not be told problem and agent again.
    """
    command = grouped(command)
    parameters = inspect.signature(command).parameters
    required = [p.name for p in _options(Case) if p.default is inspect.Parameter.empty]
    again = "resume" in parameters

    @functools.wraps(command)
    def called(**given: Any) -> None:
        missing = [name for name in required if given[name] is None]
        if missing and given.get("resume") is None:
            word = missing[0].removesuffix("_name").upper()
            raise InvalidInput(f"Missing argument {word!r} (see tacit --help)")
        command(**given)

    everything = [
        p.replace(default=None) if again and p.name in required else p for p in parameters.values()
    ]
    called.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
    return called


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command that takes groups of options be called with the options themselves.

    An argument whose type is a dataclass is such a group; its fields are put in its place.
    """
    own = inspect.signature(command, eval_str=True).parameters.values()
    groups: dict[str, Any] = {
        p.name: p.annotation for p in own if dataclasses.is_dataclass(p.annotation)
    }

    @functools.wraps(command)
    def called(**given: Any) -> None:
        made = {
            name: group(
                **{field.name: given.pop(field.name) for field in dataclasses.fields(group)}
            )
            for name, group in groups.items()
        }
        command(**made, **given)

    everything = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for p in own
        for option in (_options(groups[p.name]) if p.name in groups else [p])
    ]
    called.__signature__ = inspect.Signature(everything)  # type: ignore[attr-defined]
    return called


def _options(group: type) -> list[inspect.Parameter]:
    """What a group consists of."""
    return list(inspect.signature(group, eval_str=True).parameters.values())


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
    required = [name for name, p in takes.items() if p.default is inspect.Parameter.empty]
    entry.check({**dict.fromkeys(required), **texts})
    return {
        name: read(text, name, takes[name].annotation if name in takes else Any)
        for name, text in texts.items()
    }


def read(text: str, name: str, annotation: Any) -> Any:
    """One value, as the annotation says; where it says nothing, as it looks."""
    if get_origin(annotation) in (Union, types.UnionType):
        options = get_args(annotation)
        if type(None) in options and text.lower() == "none":
            return None
        annotation = next(option for option in options if option is not type(None))
    if annotation is str or get_origin(annotation) is Literal:
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
