"""``tacit guarantee``: what would be promised, before anything is run; and --diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.display import speaker
from tacit.cli.options import Case, Episodes, Json, Reveal, on_case

if TYPE_CHECKING:
    from tacit.forecast import NoiseForecast
    from tacit.privacy.guarantee import Guarantee


@on_case
def guarantee(
    case: Case,
    episodes: Episodes = 10_000,
    reveal: Reveal = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Compare two statements in JSON files.")
    ] = False,
    as_json: Json = False,
) -> None:
    """What would be guaranteed: noise scales, the true epsilon, and a forecast. Runs nothing.

    With --diff, two files that hold a statement are compared field by field instead.

    Example: tacit guarantee river-swim ldp-obi --epsilon 1 --episodes 1e5

    Example: tacit guarantee --diff A.json B.json
    """
    from tacit.forecast import bind, forecast

    if diff:
        _print_difference(Path(case.problem_name), Path(case.agent_name), as_json=as_json)
        return
    problem, agent = case.problem(), case.agent()
    bound = bind(agent, problem, episodes, reveal or ())
    expected = forecast(bound)
    if as_json:
        report = {"guarantee": bound.guarantee.to_json(), "forecast": expected.to_json()}
        print(json.dumps(report))
        return
    say = speaker()
    say(f"{agent.name} on {problem.name}", style="bold")
    for line in lines_of(bound.guarantee, expected):
        say(f"  {line}")


def lines_of(guarantee: Guarantee, expected: NoiseForecast) -> list[str]:
    """A guarantee in words, its noise, and what the noise does to averages."""
    lines = guarantee.statement().split("\n")
    lines += [f"Noise: {name} {scale:.6g}" for name, scale in guarantee.noise.items()]
    if not guarantee.noise:
        return [*lines, "Noise: none"]
    alike: dict[float, list[str]] = {}  # blocks by their noise
    for block, std in expected.noise_std.items():
        alike.setdefault(std, []).append(block)
    for std, blocks in alike.items():
        needed = ", ".join(
            f"{by_block[blocks[0]]:,} for {precision}"
            for precision, by_block in expected.users_needed.items()
        )
        lines.append(
            f"Forecast: after {expected.users:,} users the noise in one cell of the average "
            f"{', '.join(blocks)} per user has standard deviation {std:.4g}; users needed: {needed}"
        )
    return lines


def _print_difference(first: Path, second: Path, *, as_json: bool) -> None:
    """Compare the statements in two files."""
    from tacit.privacy.statements import compare_statements, read_statement

    a, b = read_statement(first), read_statement(second)
    compared = compare_statements(a, b)
    if as_json:
        print(json.dumps({"a": str(first), "b": str(second), **compared.to_json()}))
        return
    say = speaker()
    for side, path, statement in (("A", first, a), ("B", second, b)):
        say(f"{side}: {statement.brief()} ({path})")
    for difference in compared.differences:
        mark = f"  [{difference.stronger} stronger]" if difference.stronger else ""
        say(f"  {difference.words}{mark}")
    for sentence in compared.verdict:
        say(sentence)
