"""``tacit show policy``: a policy file in words and as a table that fits a terminal."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import options as given
from tacit.cli.display import speaker

if TYPE_CHECKING:
    from tacit.learned_policy import LearnedPolicy

MOST_LINES = 40
"""Lines of a table that are printed; ``to_frame`` has all of them."""

WIDTHS = (24, 12, 38)
"""Of the columns: what is seen, when, what to do."""


def show(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", parser=given.one_of("policy"), help="policy")
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What policy.save wrote.")],
    as_json: given.Json = False,
) -> None:
    """Print a policy that was saved, written by run --out, or published by the service.

    Example: tacit show policy results/policy.json
    """
    from tacit.learned_policy import load_policy

    learned = load_policy(file)
    if as_json:
        print(json.dumps(learned.to_json()))
        return
    say = speaker()
    _head(say, learned)
    lines = list(_lines(learned))
    for line in lines[:MOST_LINES]:
        cells = (_cut(text, width) for text, width in zip(line, WIDTHS, strict=True))
        say(f"  {'  '.join(cells)}".rstrip())
    if len(lines) > MOST_LINES:
        say(f"  ... and {len(lines) - MOST_LINES:,} more lines")
        say(f"  tacit.load_policy({str(file)!r}).to_frame() has all of them", soft_wrap=False)
    say("Privacy", style="bold")
    for text in learned.guarantee.statement().split("\n"):
        say(f"  {text}", soft_wrap=False)


def _head(say: Callable[..., None], learned: LearnedPolicy) -> None:
    about = learned.about
    by = " ".join(f"{word} {about[word]}" for word in ("agent", "problem", "task") if word in about)
    say(f"Policy{', ' + by if by else ''}", style="bold", soft_wrap=False)
    sizes = ", ".join(f"{size:,} {name}" for name, size in sorted(learned.sizes.items()))
    say(f"  {sizes}, {learned.horizon:,} steps")
    noisy = " (a released number, with noise)" if "data" in about else ""
    say(f"  learned from {learned.users:,} users{noisy}; version {learned.publication.version:,}")
    say(f"  SHA-256 {learned.digest}")


def _cut(text: str, width: int) -> str:
    return (text if len(text) <= width else text[: width - 3] + "...").ljust(width)


Line = tuple[str, str, str]


def _lines(learned: LearnedPolicy) -> Iterator[Line]:
    """What to do, by state or input, steps that say the same together."""
    from tacit.policies.linear import LinearPolicy
    from tacit.policies.parametric import ScoredPolicy
    from tacit.policies.tabular import StochasticPolicy, TabularPolicy

    policy, names = learned.policy, learned.names
    states = names.get("states") or [str(s) for s in range(learned.sizes["states"])]
    if isinstance(policy, LinearPolicy):
        yield "input", "steps", "gains on the state, and offset"
        inputs = names.get("inputs") or [str(i) for i in range(learned.sizes["inputs"])]
        for i, name in enumerate(inputs):
            yield from _spans(
                name,
                [_affine(*at) for at in zip(policy.gains[:, i], policy.offsets[:, i], strict=True)],
            )
        if policy.amplitude:
            yield (
                f"excitation of size {policy.amplitude:.3g}",
                "all",
                "while learning; act has none",
            )
        return
    if isinstance(policy, ScoredPolicy):
        yield "output", "layer", f"weights, {policy.kind}"
        for k, layer in enumerate(policy.layers()):
            for i, row in enumerate(layer):
                yield str(i), str(k), _affine(row, 0.0)
        return
    yield "state", "steps", "action"
    actions = names.get("actions") or [str(a) for a in range(learned.sizes["actions"])]
    for s, name in enumerate(states):
        if isinstance(policy, TabularPolicy):
            said = [actions[a] for a in policy.actions[:, s]]
        else:
            assert isinstance(policy, StochasticPolicy)
            said = [_chances(row, actions) for row in policy.probabilities[:, s]]
        yield from _spans(name, said)


def _spans(name: str, said: Sequence[str]) -> Iterator[Line]:
    """One line for each stretch of steps that say the same."""
    first = 0
    for text, group in itertools.groupby(said):
        last = first + len(list(group)) - 1
        yield name, str(first) if first == last else f"{first} to {last}", text
        first, name = last + 1, ""


def _chances(row: Sequence[float], actions: Sequence[str]) -> str:
    """The likeliest actions first."""
    order = sorted(range(len(row)), key=lambda a: (-row[a], a))
    return ", ".join(f"{actions[a]} {row[a]:.2f}" for a in order if row[a] >= 0.005)


def _affine(gains: Sequence[float], offset: float) -> str:
    said = ", ".join(f"{gain:.3g}" for gain in gains)
    return f"[{said}]" + (f" + {offset:.3g}" if offset else "")
