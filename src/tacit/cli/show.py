"""``tacit show``: a policy as a table that fits a terminal, a result, or two statements."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tacit.cli.display import Line, Told, privacy_lines, tell, told_result
from tacit.cli.options import Json, argument

if TYPE_CHECKING:
    from tacit.learned_policy import LearnedPolicy

MOST_LINES = 40
"""Lines of a table that are printed; ``to_frame`` has all of them."""

WIDTHS = (24, 12, 38)
"""Of the columns: what is seen, when, what to do."""


_FILE = argument("FILE", "A policy, the folder of a result, or a JSON with a statement.")
_OTHER = argument("[OTHER]", "Compare the statements in both.")


def show(
    file: Annotated[Path, _FILE],
    other: Annotated[Path | None, _OTHER] = None,
    as_json: Json = False,
) -> None:
    """Print a saved policy or result, or compare two statements.

    A policy is what policy.save wrote, run --out, or what the service publishes.

    Example: tacit show results/policy.json

    Example: tacit show results

    Example: tacit show before.json after.json
    """
    from tacit.learned_policy import load_policy
    from tacit.simulation.result import Result

    if other is not None:
        tell(_compared(file, other), as_json=as_json)
    elif file.is_dir():
        tell(told_result(Result.load(file)), as_json=as_json)
    else:
        learned = load_policy(file)
        tell(Told(learned.to_json(), _policy_lines(file, learned)), as_json=as_json)


def _compared(first: Path, second: Path) -> Told:
    """What differs between the statements in two files."""
    from tacit.privacy.comparison import compare_statements, read_statement

    a, b = read_statement(first), read_statement(second)
    comparison = compare_statements(a, b)
    lines = [f"A: {a.brief()} ({first})", f"B: {b.brief()} ({second})"]
    for difference in comparison.differences:
        mark = f"  [{difference.stronger} stronger]" if difference.stronger else ""
        lines.append(f"  {difference.words}{mark}")
    files = {"a": str(first), "b": str(second)}
    return Told({**files, **comparison.to_json()}, [*lines, *comparison.verdict])


def _policy_lines(file: Path, learned: LearnedPolicy) -> Iterator[str | Line]:
    about = learned.about
    by = " ".join(f"{word} {about[word]}" for word in ("agent", "problem", "task") if word in about)
    yield Line(f"Policy{', ' + by if by else ''}", style="bold", wrap=True)
    sizes = ", ".join(f"{size:,} {name}" for name, size in sorted(learned.sizes.items()))
    yield f"  {sizes}, {learned.horizon:,} steps"
    noisy = " (a released number, with noise)" if "data" in about else ""
    version = learned.publication.version
    yield f"  learned from {learned.users:,} users{noisy}; version {version:,}"
    yield f"  SHA-256 {learned.digest}"
    lines = list(_lines(learned))
    for line in lines[:MOST_LINES]:
        cells = (_cut(text, width) for text, width in zip(line, WIDTHS, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
    if len(lines) > MOST_LINES:
        yield f"  ... and {len(lines) - MOST_LINES:,} more lines"
        more = f"  tacit.load_policy({str(file)!r}).to_frame() has all of them"
        yield Line(more, wrap=True)
    yield from privacy_lines(learned.guarantee.statement(), wrap=True)


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
            rules = zip(policy.gains[:, i], policy.offsets[:, i], strict=True)
            yield from _spans(name, [_affine(*rule) for rule in rules])
        if policy.amplitude:
            size = f"excitation of size {policy.amplitude:.3g}"
            yield size, "all", "while learning; act has none"
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
            steps = [actions[a] for a in policy.actions[:, s]]
        else:
            assert isinstance(policy, StochasticPolicy)
            steps = [_chances(row, actions) for row in policy.probabilities[:, s]]
        yield from _spans(name, steps)


def _spans(name: str, steps: Sequence[str]) -> Iterator[Row]:
    """One line for each stretch of steps that say the same."""
    first = 0
    for text, group in itertools.groupby(steps):
        last = first + len(list(group)) - 1
        yield name, str(first) if first == last else f"{first} to {last}", text
        first, name = last + 1, ""


def _chances(row: Sequence[float], actions: Sequence[str]) -> str:
    """The likeliest actions first."""
    order = sorted(range(len(row)), key=lambda a: (-row[a], a))
    return ", ".join(f"{actions[a]} {row[a]:.2f}" for a in order if row[a] >= 0.005)


def _affine(gains: Sequence[float], offset: float) -> str:
    linear = ", ".join(f"{gain:.3g}" for gain in gains)
    return f"[{linear}]" + (f" + {offset:.3g}" if offset else "")
