"""``tacit show``: a policy as a table that fits a terminal, a result, or two statements."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli import options
from tacit.cli.display import Line, Told, privacy_lines, tell, told_result

if TYPE_CHECKING:
    from tacit.learned_policy import LearnedPolicy
    from tacit.privacy.comparison import Comparison

MOST_LINES = 40
"""Lines of a table that are printed; ``to_frame`` has all of them."""

WIDTHS = (24, 12, 38)
"""Of the columns: what is seen, when, what to do."""


def show(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A policy, the folder of a result, or a JSON with a statement."
        ),
    ],
    other: Annotated[
        Path | None, typer.Argument(metavar="[OTHER]", help="Compare the statements in both.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Print a saved policy or result, or compare two statements.

    A policy is what policy.save wrote, run --out, or what the service publishes.

    Example: tacit show results/policy.json

    Example: tacit show results

    Example: tacit show before.json after.json
    """
    if other is not None:
        tell(_compared(file, other), as_json=as_json)
    elif file.is_dir():
        tell(_result(file), as_json=as_json)
    else:
        tell(_policy(file), as_json=as_json)


def _result(folder: Path) -> Told:
    """The result that a run wrote into a folder."""
    from tacit.simulation.result import Result

    return told_result(Result.load(folder))


def _compared(first: Path, second: Path) -> Told:
    """What differs between the statements in two files."""
    from tacit.privacy.comparison import compare_statements, read_statement

    a, b = read_statement(first), read_statement(second)
    compared = compare_statements(a, b)
    return Told(
        {"a": str(first), "b": str(second), **compared.to_json()},
        _differences(compared, [f"A: {a.brief()} ({first})", f"B: {b.brief()} ({second})"]),
    )


def _differences(compared: Comparison, heads: Iterable[str]) -> Iterator[str]:
    yield from heads
    for difference in compared.differences:
        mark = f"  [{difference.stronger} stronger]" if difference.stronger else ""
        yield f"  {difference.words}{mark}"
    yield from compared.verdict


def _policy(file: Path) -> Told:
    """A policy with its guarantee."""
    from tacit.learned_policy import load_policy

    learned = load_policy(file)
    return Told(learned.to_json(), _policy_lines(file, learned))


def _policy_lines(file: Path, learned: LearnedPolicy) -> Iterator[str | Line]:
    yield from _head(learned)
    lines = list(_lines(learned))
    for line in lines[:MOST_LINES]:
        cells = (_cut(text, width) for text, width in zip(line, WIDTHS, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
    if len(lines) > MOST_LINES:
        yield f"  ... and {len(lines) - MOST_LINES:,} more lines"
        more = f"  tacit.load_policy({str(file)!r}).to_frame() has all of them"
        yield Line(more, wrap=True)
    yield from privacy_lines(learned.guarantee.statement(), wrap=True)


def _head(learned: LearnedPolicy) -> Iterator[str | Line]:
    about = learned.about
    by = " ".join(f"{word} {about[word]}" for word in ("agent", "problem", "task") if word in about)
    yield Line(f"Policy{', ' + by if by else ''}", style="bold", wrap=True)
    sizes = ", ".join(f"{size:,} {name}" for name, size in sorted(learned.sizes.items()))
    yield f"  {sizes}, {learned.horizon:,} steps"
    noisy = " (a released number, with noise)" if "data" in about else ""
    version = learned.publication.version
    yield f"  learned from {learned.users:,} users{noisy}; version {version:,}"
    yield f"  SHA-256 {learned.digest}"


def _cut(text: str, width: int) -> str:
    return (text if len(text) <= width else text[: width - 3] + "...").ljust(width)


Row = tuple[str, str, str]


def _lines(learned: LearnedPolicy) -> Iterator[Row]:
    """What to do, by state or input, steps that say the same together."""
    from tacit.policies.linear import LinearPolicy
    from tacit.policies.parametric import ParametricPolicy
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
    if isinstance(policy, ParametricPolicy):
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


def _spans(name: str, said: Sequence[str]) -> Iterator[Row]:
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
