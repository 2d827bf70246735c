"""``tacit reproduce coach`` and ``clinic``: what privacy costs in worlds people care about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.display import Told, speaker, tell
from tacit.cli.options import real, several, whole
from tacit.errors import InvalidInput
from tacit.validate import integer

if TYPE_CHECKING:
    from tacit_lab.cases.outcome import CaseOutcome

    Reader = Callable[[str, str], Any]


def _whole(text: str, option: str, low: int = 1) -> list[int]:
    return [integer(n, option, low=low) for n in several(text, option, whole)]


def _one(text: str, option: str, low: int = 1) -> int:
    (number, *others) = _whole(text, option, low)
    if others:
        raise InvalidInput(f"{option} = {text!r}, but it must be one whole number")
    return number


def _agents(text: str, option: str) -> list[str]:
    """Agents of the coach, with their model or without."""
    from tacit_lab.cases.coach import AGENTS

    words = text.split(",")
    for word in words:
        if not any(name.startswith(word) for name in AGENTS):
            raise InvalidInput(f"{option}: the coach has no {word!r}, but {', '.join(AGENTS)}")
    return [name for name in AGENTS if name.startswith(tuple(words))]


_BOTH: dict[str, Reader] = {
    "people": _whole,
    "epsilon": lambda text, option: several(text, option, real),
    "runs": _one,
    "seed": lambda text, option: _one(text, option, low=0),
}
READ: dict[str, dict[str, Reader]] = {
    "clinic": _BOTH,
    "coach": {**_BOTH, "agents": _agents, "returns": _one},
}
"""What -O takes, by world."""


def study(what: str, options: dict[str, Any], out: Path | None, as_json: bool) -> None:
    """What a private policy is worth in the clinic or for the coach, by people and epsilon."""
    from tacit.util.files import require_folder, write_json
    from tacit.wire.strict_json import finite
    from tacit_lab.cases import clinic, coach
    from tacit_lab.cases.outcome import FILE, ONLY_ON_THE_PAGE

    say = speaker(quiet=as_json)
    if "epsilon" in options:
        options["epsilons"] = options.pop("epsilon")
    world = clinic if what == "clinic" else coach
    size = replace(world.SIZE, **options, watch=lambda one: say(_shown(one)))
    findings = finite(world.study(size))
    if out is not None:
        require_folder(out)
        write_json(out / FILE, findings)
        say(f"wrote {out / FILE}; tacit report {out} makes a page of it")
    shown = {name: value for name, value in findings.items() if name not in ONLY_ON_THE_PAGE}
    tell(Told(shown, _lines(findings)), as_json=as_json)


def _lines(findings: dict[str, Any]) -> Iterator[str]:
    for name, value in findings["references"].items():
        yield f"  {name}: {value:.4g}"
    for one in findings["people_needed"]:
        n = one["people"]
        since = "never, up to what was tried" if n is None else f"from {n:,} people on"
        yield f"  {one['agent']}, epsilon {one['epsilon']:g}, beats {findings['beat']}: {since}"
    level, runs = findings["outcomes"][0]["epsilon"], findings["outcomes"][0]["runs"]
    for start in findings["head_start"]:
        without, prior = start["regret_per_user"]["value"], start["with_prior"]["value"]
        yield (
            f"  tacit-joint, epsilon {level:g}: the first {start['users']:,} users lose "
            f"{without:.4g} each, and {prior:.4g} after a log of {start['people']:,} people "
            f"(mean of {runs} run{'s' if runs > 1 else ''})"
        )


def _shown(one: CaseOutcome) -> str:
    runs, mean = len(one.values), one.mean
    interval = f"mean of {runs} runs, 95% interval {mean.low:.4g} to {mean.high:.4g}"
    return (
        f"  {one.agent}, {one.people:,} people, epsilon {one.epsilon:g}: {mean.value:.4g} "
        f"({interval if runs > 1 else 'one run, no interval'})"
    )
