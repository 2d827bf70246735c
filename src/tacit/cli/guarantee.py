"""``tacit guarantee``: what would be promised, before anything is run; and --diff."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.display import speaker
from tacit.cli.options import Case, Episodes, Json, Reveal, Rule, on_case
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.forecast import NoiseForecast
    from tacit.privacy.guarantee import Guarantee


@on_case
def guarantee(
    case: Case,
    rule: Rule,
    episodes: Episodes = 10_000,
    reveal: Reveal = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Compare two statements in JSON files.")
    ] = False,
    curve: Annotated[
        Path | None, typer.Option("--curve", help="Draw the trade-off curve into this file.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option("--form", help="Print it in the fields of nist or opendp instead, as JSON."),
    ] = None,
    as_json: Json = False,
) -> None:
    """What would be guaranteed: noise scales, the true epsilon, and a forecast. Runs nothing.

    With --diff, two files that hold a statement are compared field by field instead.

    Example: tacit guarantee river-swim ldp-obi --epsilon 1 --episodes 1e5

    Example: tacit guarantee --diff A.json B.json

    Example: tacit guarantee river-swim tacit-joint --epsilon 1 --curve plot.png

    Example: tacit guarantee river-swim tacit-joint --epsilon 1 --participations any --period 30d
    """
    from tacit.forecast import bind, forecast
    from tacit.simulation.plot import check_target

    if curve is not None:
        check_target(curve)
    if diff:
        if curve is not None or form is not None:
            raise InvalidInput("--diff compares two files; --curve and --form are for one agent")
        _print_difference(Path(case.problem_name), Path(case.agent_name), as_json=as_json)
        return
    problem, agent = case.problem(), case.agent()
    bound = bind(problem, agent, episodes, reveal or (), rule.rule())
    if curve is not None:
        _draw(bound.guarantee, curve)
    if form is not None:
        _print_form(bound.guarantee, form)
        return
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
            f"Forecast: after {expected.users:,} reports the noise in one cell of the average "
            f"{', '.join(blocks)} per report has standard deviation {std:.4g}; reports needed: "
            f"{needed}"
        )
    return lines


def _draw(guarantee: Guarantee, path: Path) -> None:
    """The trade-off curve: what a test misses at least, by its false alarms."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from tacit.privacy.sentences import over

    figure = Figure(figsize=(5, 4.5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    curve = guarantee.curve(501)
    axes.plot(curve[:, 0], curve[:, 1], label=guarantee.brief())
    axes.plot([0, 1], [1, 0], "--", color="grey", label="nothing can be learned")
    axes.set_xlabel("false alarms (share of those of whom it is not true)")
    axes.set_ylabel("missed at least (share of those of whom it is true)")
    axes.set_title(f"No test gets below the line{over(guarantee)}", fontsize="medium")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(path)


def _print_form(guarantee: Guarantee, name: str) -> None:
    """The statement in the fields of others; what is missing is named beside it."""
    from tacit.privacy.forms import form, unfilled

    fields = form(guarantee, name)
    print(json.dumps(fields, indent=2))
    typer.echo(f"to be filled in by you: {', '.join(unfilled(fields))}", err=True)


def _print_difference(first: Path, second: Path, *, as_json: bool) -> None:
    """Compare the statements in two files."""
    from tacit.privacy.comparison import compare_statements, read_statement

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
