"""The rules by which a device makes its report: public, exact, and named in every report.

They follow from the terms of a task. They are worked out when the task begins and stay as they are
from then on, so that a device on another machine draws with the very same thresholds.
docs/reference/wire.md says what each of them means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidInput
from tacit.kernels.public.questions import MOVE, REWARD, STEP
from tacit.privacy.finite.bits import UnaryEncoding
from tacit.privacy.finite.cell_answers import domains
from tacit.privacy.finite.oracle import LARGEST_DOMAIN, Oracle
from tacit.privacy.finite.sliding import MOST_OUTPUTS, Sliding
from tacit.privacy.finite.subset import SubsetSelection
from tacit.wire.strict_json import fields, named, spelt, text, whole

if TYPE_CHECKING:
    from tacit.learner import BoundAgent
    from tacit.task.pairs import Places
    from tacit.task.task import Task

VERSION = 1
"""Of the rules; a device follows no other."""

KINDS = {"step": STEP, "move": MOVE, "reward": REWARD}
"""Questions by the names that rules give them."""

NEAR = 2**40
"""Thresholds of one epsilon that two machines work out differ by less than so small a part: of 1 if
they are chances, in units of 2^-64, and of themselves if they are weights."""

_WEIGHTS = ("likely", "unlikely")

_EVERY = ("version", "report", "horizon", "states", "actions")


def rules_of(bound: BoundAgent) -> dict[str, Any]:
    """The rules of an agent that is fitted to its task."""
    device = bound.privatizer.device
    raw = "return" if bound.task.family == "episodic" else "trajectory"
    made = {"report": raw} if device is None else device.rules()
    return {"version": VERSION, **rules_sizes(bound.task), **made}


def rules_sizes(task: Task) -> dict[str, int]:
    """What rules say of a task; the sides of a box are called its actions."""
    actions = task.sizes["actions" if "actions" in task.sizes else "inputs"]
    return {"horizon": task.horizon, "states": task.sizes["states"], "actions": actions}


def rules_hash(rules: Mapping[str, Any]) -> str:
    """What a report calls the rules it was made by: SHA-256 of their spelling by RFC 8785."""
    return hashlib.sha256(spelt(dict(rules))).hexdigest()


def read_rules(value: object) -> Mapping[str, Any]:
    """Rules as they were fetched, if this version of them is known here."""
    rules = named(value, "rules")
    if rules.get("version") != VERSION:
        raise InvalidInput(
            f"the rules have version {rules.get('version')!r}, this device follows {VERSION}; "
            "update the older one"
        )
    return fields(rules, "rules", _EVERY, set(rules))


def oracles_of(rules: Mapping[str, Any], places: Places) -> dict[int, Oracle]:
    """The randomizers of rules about cells, by kind of question; places are those of the task."""
    S, ends = len(places.place), places.live < len(places.state)
    if rules.get("places") != (places.place.tolist() if ends else None):
        raise InvalidInput(
            "the rules number the states in another way than the terminal states of the task say"
        )
    oracles = {}
    for name, how in named(rules["cells"], "cells").items():
        if name not in KINDS:
            raise InvalidInput(f"the rules know questions about {name!r}, this device does not")
        oracle = oracles[KINDS[name]] = _oracle(how, name)
        if oracle.domain != domains(places)[KINDS[name]]:
            raise InvalidInput(f"the rules have {oracle.domain} cells of {S} states ({name})")
    if REWARD not in oracles:
        raise InvalidInput("the rules have no randomizer for the reward of the last step")
    return oracles


def sliding_of(rules: Mapping[str, Any]) -> Sliding:
    """The randomizer of rules about one number."""
    parts = fields(rules, "rules", (*_EVERY, "outputs", "run", *_WEIGHTS))
    outputs = whole(parts["outputs"], "outputs", 2, MOST_OUTPUTS)
    run = whole(parts["run"], "run", 1, outputs - 1)
    return Sliding(outputs, run, *(_threshold(parts[name], 40) for name in _WEIGHTS))


def _oracle(value: object, what: str) -> Oracle:
    kind = value.get("randomizer") if isinstance(value, Mapping) else None
    if kind == "subset":
        parts = fields(value, what, ("randomizer", "domain", "size", "own"))
        size = whole(parts["size"], "size", 1)
        return SubsetSelection(_domain(parts), size, _threshold(parts["own"]))
    if kind == "unary":
        parts = fields(value, what, ("randomizer", "domain", "keep", "flip"))
        return UnaryEncoding(_domain(parts), _threshold(parts["keep"]), _threshold(parts["flip"]))
    raise InvalidInput(f"the rules name a randomizer {str(kind)[:40]!r} that is not known here")


def _domain(parts: Mapping[str, Any]) -> int:
    return whole(parts["domain"], "domain", 2, LARGEST_DOMAIN)


def _threshold(value: object, longest: int = 20) -> int:
    """A chance in units of 2^-64, or a weight, in decimal digits."""
    digits = text(value, "a threshold", longest)
    if not (digits.isascii() and digits.isdecimal()) or digits != str(int(digits)):
        raise InvalidInput("a threshold must be a whole number in decimal digits")
    return int(digits)


def same_rules(first: object, second: object, weight: bool = False) -> bool:
    """Whether rules are the same but for how machines round a logarithm in their thresholds."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(
            same_rules(first[name], second[name], name in _WEIGHTS) for name in first
        )
    if isinstance(first, str) and isinstance(second, str) and (first + second).isdecimal():
        a, b = int(first), int(second)
        return a == b or abs(a - b) * NEAR < (max(a, b) if weight else 1 << 64)
    return first == second
