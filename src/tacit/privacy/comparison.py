"""Two guarantees side by side: read from files, compared field by field, and as promises.

One statement protects at least as much as another if it implies it. Trusting nobody implies every
other trust: a local guarantee is also one against whoever sees the shuffler's output, and that is
also a joint one (post-processing). A whole user covers each participation. And one trade-off curve
covers another (:class:`Tradeoff`): a Gaussian one at every epsilon, else at the stated points.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tacit.errors import InvalidInput
from tacit.privacy.charges import LARGEST, PureCharge, root_up
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.sentences import over
from tacit.task.participation import Participation

Side = Literal["A", "B"]

TRUST = {"none": 0, "joint": 1, "shuffle": 2, "local": 3}
"""How little has to be trusted; each model's guarantee implies the same numbers in those below."""

_TRUSTED = {
    "none": "promises nothing",
    "joint": "trusts a curator",
    "shuffle": "trusts a shuffler",
    "local": "trusts nobody",
}


def read_statement(path: Path) -> Guarantee:
    """The guarantee in a JSON file: bare, or under the key ``guarantee`` as commands print it."""
    try:
        data = json.loads(path.read_text())
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidInput(f"{path} is not a JSON file: {error}") from None
    if isinstance(data, dict) and isinstance(data.get("guarantee"), dict):
        data = data["guarantee"]
    try:
        return _statement(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        reason = f"it has no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)
        raise InvalidInput(
            f"{path} holds no guarantee ({reason}); expected is what tacit run --json, tacit "
            "guarantee --json or a collector's /v1/guarantee prints"
        ) from None


def _statement(data: Any) -> Guarantee:
    """From JSON, with wrong types refused: a bare word is not a number, nor a list of sentences."""
    if not isinstance(data, dict):
        raise TypeError(f"it is a {type(data).__name__}, not an object")
    known = Guarantee.__dataclass_fields__
    fields = {key: value for key, value in data.items() if key in known}
    if fields["model"] not in TRUST:
        raise TypeError(f"model {fields['model']!r} is none of {', '.join(TRUST)}")
    optional = () if fields.get("mu") is None else ("mu",)
    often = () if fields["participations"] is None else ("participations",)
    for key in ("delta", *often, *optional):
        if not _real(fields[key]):
            raise TypeError(f"its {key} is not a number")
    for key in ("assumptions", "revealed", "also"):
        if not isinstance(fields[key], list):
            raise TypeError(f"its {key} is not a list")
    if not isinstance(fields["noise"], dict):
        raise TypeError("its noise is not an object")
    fields["also"] = [_statement(view).to_json() for view in data["also"]]
    for part in fields.get("parts", ()):
        _statement(part["guarantee"])
        if not isinstance(part["times"], int) or part["times"] < 1:
            raise TypeError("its parts are not counted in whole numbers from 1 on")
    return Guarantee.from_json(fields)


@dataclass(frozen=True)
class Difference:
    """One field that two statements do not share.

    Attributes:
        field: its name in the JSON; noise scales are ``noise.NAME``.
        a: what the first says.
        b: what the second says.
        stronger: whose value protects more, taken alone; None where neither does or it cannot be
            said.
        words: the difference in a sentence.
    """

    field: str
    a: Any
    b: Any
    stronger: Side | None
    words: str


@dataclass(frozen=True)
class Comparison:
    """The differences of two statements and which promise is the stronger one.

    Attributes:
        differences: field by field.
        stronger: "A", "B", "same", or None where neither implies the other.
        verdict: that in sentences, with what it rests on.
    """

    differences: tuple[Difference, ...]
    stronger: Literal["A", "B", "same"] | None
    verdict: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "differences": [vars(difference) for difference in self.differences],
            "stronger": self.stronger,
            "verdict": list(self.verdict),
        }


def compare_statements(a: Guarantee, b: Guarantee) -> Comparison:
    """Compare two statements."""
    differences = tuple(_differences(a, b))
    forth, back = implies(a, b), implies(b, a)
    stronger: Literal["A", "B", "same"] | None = None
    if forth and back:
        stronger = "same"
    elif forth or back:
        stronger = "A" if forth else "B"
    return Comparison(differences, stronger, tuple(_verdict(a, b, stronger, differences)))


def implies(a: Guarantee, b: Guarantee) -> bool:
    """True if whoever has promise ``a`` has promise ``b``, as far as the statements tell."""
    return all(any(_implies(x, y) for x in (a, *a.also)) for y in (b, *b.also))


def _implies(a: Guarantee, b: Guarantee) -> bool:
    if b.model == "none":
        return True
    if TRUST[a.model] < TRUST[b.model] or a.relation != b.relation:
        return False
    if not _covers_times(a, b):
        return False
    if b.mu is not None:
        return _covering_mu(a) <= b.mu * (1 + 1e-9)
    points = b.tradeoff.points
    return all(a.tradeoff.delta(epsilon) <= delta * (1 + 1e-9) for epsilon, delta in points)


def _covers_times(a: Guarantee, b: Guarantee) -> bool:
    """True if all of a person's times that ``b`` speaks of are among those of ``a``.

    A sum speaks of other tasks than one of its parts, so the tasks are compared one by one.
    """
    if a.parts or b.parts:
        tasks = [[(n, part.participations, part.rule) for n, part in x.parts] for x in (a, b)]
        return a.unit == b.unit and tasks[0] == tasks[1]
    if b.unit != "user":
        return True
    return a.unit == "user" and _times(a) >= _times(b) and _lasts(a, b)


def _times(guarantee: Guarantee) -> float:
    return math.inf if guarantee.participations is None else guarantee.participations


def _lasts(a: Guarantee, b: Guarantee) -> bool:
    """True if budgets of ``a`` are never renewed, or exactly when those of ``b`` are.

    A shorter period of ``b`` may touch two of ``a``. Who may also stay away is promised more, and
    so is who may come back sooner.
    """
    first, second = (x.rule or Participation(x.participations) for x in (a, b))
    hidden = first.attendance == "private" or second.attendance == "public"
    soon = first.apart <= second.apart
    return hidden and soon and first.period in (0.0, second.period)


def _covering_mu(guarantee: Guarantee) -> float:
    """The least mu of a Gaussian curve that the statement implies; infinite where none follows."""
    if guarantee.mu is not None:
        return guarantee.mu
    pure = [e for e, delta in guarantee.tradeoff.points if delta == 0.0 and e <= LARGEST]
    return root_up(PureCharge(min(pure)).as_gaussian()) if pure else math.inf


def _differences(a: Guarantee, b: Guarantee) -> Iterator[Difference]:
    one, two = a.to_json(), b.to_json()
    for field in one:
        if field not in ("noise", "assumptions", "revealed", "also", "parts", "rule") and (
            one[field] != two[field]
        ):
            difference = _scalar(field, one[field], two[field])
            comparable = field not in _PER or over(a) == over(b)
            yield difference if comparable else _of_others(difference, a, b)
    if a.rule != b.rule:
        rules = ["no more than that" if x.rule is None else x.rule.in_words() for x in (a, b)]
        teach = ["" if x.rule is None else f" ({x.rule.teaches or 'every'})" for x in (a, b)]
        words = f"taking part: A says {rules[0]}{teach[0]}, B {rules[1]}{teach[1]}"
        yield Difference("rule", one.get("rule"), two.get("rule"), None, words)
    yield from _noise(a, b)
    for field in ("assumptions", "revealed"):
        yield from _lists(field, one[field], two[field])
    if a.parts != b.parts:
        counts = [sum(times for times, _ in x.parts) or 1 for x in (a, b)]
        words = f"tasks added up: A {counts[0]:,}, B {counts[1]:,}"
        if counts[0] == counts[1]:
            words = f"both are sums over {counts[0]:,} tasks, of different parts"
        yield Difference("parts", one.get("parts"), two.get("parts"), None, words)
    if one["also"] != two["also"]:
        count = [len(one["also"]), len(two["also"])]
        words = f"A lists {count[0]} further views, B {count[1]}; compared in the verdict"
        yield Difference("also", one["also"], two["also"], None, words)


_PER = ("epsilon", "delta", "mu", "delta_at_requested_epsilon", "participations")
"""What is not compared where one of them is of a period, and the other one is not."""


def _of_others(difference: Difference, a: Guarantee, b: Guarantee) -> Difference:
    """The same difference; neither is ahead, because the numbers are over other things."""
    spans = [over(x).strip() or "over all that one person does" for x in (a, b)]
    words = f"{difference.words} (A {spans[0]}, B {spans[1]})"
    return replace(difference, stronger=None, words=words)


_SMALLER_IS_STRONGER = ("epsilon", "delta", "delta_at_requested_epsilon")


def _scalar(field: str, a: Any, b: Any) -> Difference:
    """A field with one value."""
    stronger: Side | None = None
    words = f"{field.replace('_', ' ')}: A says {_shown(a)}, B {_shown(b)}"
    if field == "model":
        stronger = "A" if TRUST[a] > TRUST[b] else "B"
        words = f"A is {a} ({_TRUSTED[a]}), B is {b} ({_TRUSTED[b]})"
    elif field in _SMALLER_IS_STRONGER:
        missing = math.inf if field == "epsilon" else 1.0
        x, y = (missing if value is None else value for value in (a, b))
        stronger = None if x == y else "A" if x < y else "B"
    elif field == "mu" and None not in (a, b):
        stronger = "A" if a < b else "B"
    elif field == "unit":
        stronger = "A" if a == "user" else "B"
        words = f"A protects a whole {a}, B a whole {b}"
    elif field == "participations":
        stronger = "A" if b is not None and (a is None or a > b) else "B"
        counts = ["any number of" if x is None else x for x in (a, b)]
        words = f"A covers {counts[0]} participations of one person, B {counts[1]}"
    elif field == "simulated":
        which: Side = "A" if a else "B"
        stronger = "B" if a else "A"
        words = f"{which} was made in simulation: it protects nobody"
    return Difference(field, a, b, stronger, words)


def _noise(a: Guarantee, b: Guarantee) -> Iterator[Difference]:
    """Parameters by name; more noise is more protection only in the same mechanism."""
    for name in [name for name in a.noise if name in b.noise]:
        x, y = a.noise[name], b.noise[name]
        if x == y:
            continue
        stronger: Side | None = None
        words = f"noise {name}: A {_shown(x)}, B {_shown(y)}"
        scale = "std" in name or "scale" in name
        if scale and a.mechanism == b.mechanism and _real(x) and _real(y):
            stronger = "A" if x > y else "B"
            words += f"; {stronger} adds more"
        yield Difference(f"noise.{name}", x, y, stronger, words)
    mine = {name: value for name, value in a.noise.items() if name not in b.noise}
    other = {name: value for name, value in b.noise.items() if name not in a.noise}
    if mine or other:
        lists = [", ".join(f"{n} {_shown(v)}" for n, v in only.items()) for only in (mine, other)]
        words = f"noise of other kinds: A has {lists[0] or 'none'}; B has {lists[1] or 'none'}"
        yield Difference("noise", mine, other, None, words)


def _real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _lists(field: str, a: list[str], b: list[str]) -> Iterator[Difference]:
    """Sentences or facts that only one of them has."""
    verb = "assumes" if field == "assumptions" else "told the learner"
    for side, mine, other in (("A", a, b), ("B", b, a)):
        for text in mine:
            if text not in other:
                x, y = (text, None) if side == "A" else (None, text)
                yield Difference(field, x, y, None, f"only {side} {verb}: {text}")


def _verdict(
    a: Guarantee, b: Guarantee, stronger: str | None, differences: tuple[Difference, ...]
) -> Iterator[str]:
    """Which promise is stronger, and what that rests on."""
    if not differences:
        yield "The two statements say the same, word for word."
        return
    if stronger == "same":
        yield "The two promise the same protection; the rest is how it is made."
    elif stronger:
        weaker = "B" if stronger == "A" else "A"
        yield f"{stronger} protects more: its promise implies {weaker}'s, and not the other way."
    else:
        ahead = {
            side: [d.field for d in differences if d.stronger == side and "noise" not in d.field]
            for side in ("A", "B")
        }
        leads = [f"{side} is ahead in {', '.join(f)}" for side, f in ahead.items() if f]
        reason = "; ".join(leads) or "they protect against different changes of the data"
        yield f"Neither promise implies the other: {reason}."
    for side, mine, other in (("A", a, b), ("B", b, a)):
        if stronger in (side, "same") and set(mine.assumptions) - set(other.assumptions):
            yield f"That rests on assumptions that only {side} makes; read them."
        if mine.simulated:
            yield f"{side} was made in simulation: nobody is protected by that run itself."


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
