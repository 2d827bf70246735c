"""``tacit guarantee``: noise, true guarantee and forecast before anything is run, and --diff."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from tacit.cli.case import Case
from tacit.foretell import Forecast, bind, forecast
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.statements import compare_statements, read_statement


def print_guarantee(case: Case, *, as_json: bool) -> None:
    """Work it out and print it."""
    problem, agent = case.problem(), case.agent()
    bound = bind(agent, problem, case.episodes(), case.reveal)
    expected = forecast(bound)
    if as_json:
        report = {"guarantee": bound.guarantee.to_json(), "forecast": expected.to_json()}
        print(json.dumps(report))
        return
    console = Console(highlight=False)
    console.print(f"[bold]{agent.name} on {problem.name}[/bold]", soft_wrap=True)
    for line in lines_of(bound.guarantee, expected):
        console.print(f"  {line}", markup=False, soft_wrap=True)


def lines_of(guarantee: Guarantee, expected: Forecast) -> list[str]:
    """A guarantee in words, its noise, and what the noise does to averages."""
    lines = guarantee.statement().split("\n")
    lines += [f"Noise: {name} {scale:.6g}" for name, scale in guarantee.noise.items()]
    if not guarantee.noise:
        return [*lines, "Noise: none"]
    return lines + [_forecast_line(expected, blocks) for blocks in _alike(expected)]


def _alike(expected: Forecast) -> list[list[str]]:
    """Blocks grouped by equal noise."""
    groups: dict[float, list[str]] = {}
    for block, std in expected.noise_std.items():
        groups.setdefault(std, []).append(block)
    return list(groups.values())


def _forecast_line(expected: Forecast, blocks: list[str]) -> str:
    needed = ", ".join(
        f"{by_block[blocks[0]]:,} for {precision}"
        for precision, by_block in expected.users_needed.items()
    )
    return (
        f"Forecast: after {expected.users:,} users the noise in one cell of the average "
        f"{', '.join(blocks)} per user has standard deviation "
        f"{expected.noise_std[blocks[0]]:.4g}; users needed: {needed}"
    )


def print_difference(first: Path, second: Path, *, as_json: bool) -> None:
    """Compare the statements in two files."""
    a, b = read_statement(first), read_statement(second)
    compared = compare_statements(a, b)
    if as_json:
        print(json.dumps({"a": str(first), "b": str(second), **compared.to_json()}))
        return
    console = Console(highlight=False)
    for side, path, statement in (("A", first, a), ("B", second, b)):
        line = f"{side}: {statement.brief()} ({path})"
        console.print(line, markup=False, soft_wrap=True)
    for difference in compared.differences:
        mark = f"  [{difference.stronger} stronger]" if difference.stronger else ""
        console.print(f"  {difference.words}{mark}", markup=False, soft_wrap=True)
    for sentence in compared.verdict:
        console.print(sentence, markup=False, soft_wrap=True)
