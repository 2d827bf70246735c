"""The sections of a report: one per problem, each with its pictures and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.util.intervals import Interval
from tacit_lab.report import analysis, figures
from tacit_lab.report.results import Arm, said


@dataclass(frozen=True)
class Shown:
    """A picture in all its sizes, with legend and caption."""

    name: str
    pictures: Sequence[figures.Picture]
    keys: Sequence[dict[str, str]]
    others: Sequence[str]
    caption: str
    first: str = "log"
    scales: bool = False
    data: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True)
class Part:
    """A heading with what is below it; ``more`` are tables that are folded away at first."""

    title: str
    text: Sequence[str] = ()
    figure: Shown | None = None
    names: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = ()
    more: Sequence[Part] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class ProblemSection:
    """All about one problem."""

    id: str
    title: str
    short: str
    facts: str
    parts: Sequence[Part]


def section(place: int, problem: str, arms: Sequence[Arm]) -> ProblemSection:
    """Everything that can be said about the arms on one problem."""
    style = figures.styles(arms)
    name = f"p{place}"
    first = arms[0].result.problem
    best = "The optimal policy earns"
    if first.get("family") == "episodic":  # nobody knows the optimum
        best = "Regret is counted from the largest declared return: it is"
    facts = (
        f"{said(first['name'], first['parameters'])}. {best} "
        f"{number(first['optimal_value'])} per user, the {arms[0].baseline} "
        f"{number(first['baseline']['value'])}."
    )
    longest_private = next(iter(by_length([arm for arm in arms if arm.private]).items()), (0, []))
    parts = (
        _curves(arms, style, name),
        _finals(arms),
        _epsilon(*longest_private, style, name),
        _users(arms, style, name),
        _prices(arms),
        _per_person(arms, style, name),
        _winnings(arms),
        _contests(*longest_private),
        _users_needed(*longest_private),
    )
    shown = [part for part in parts if part.rows or part.figure]
    return ProblemSection(name, problem, str(first["name"]), facts, shown)


def longest(arms: Sequence[Arm]) -> list[Arm]:
    """Of each learner and epsilon the arm with the largest K."""
    return [
        max(same, key=lambda arm: arm.users)
        for same in analysis.grouped(arms, lambda a: a.label).values()
    ]


def by_length(arms: Sequence[Arm]) -> dict[int, list[Arm]]:
    """Arms by K, the largest first."""
    return dict(sorted(analysis.grouped(arms, lambda arm: arm.users).items(), reverse=True))


def _key(label: str, style: figures.Style) -> dict[str, str]:
    dash = (
        "" if style.dash == figures.DASHES[0] else " ".join(f"{x * 1.5:g}" for x in style.dash[1])
    )
    return {"label": label, "colour": style.colour, "dash": dash}


def _curves(arms: Sequence[Arm], style: dict[str, figures.Style], name: str) -> Part:
    place = {label: i for i, label in enumerate(style)}
    curves = figures.curves_of(sorted(longest(arms), key=lambda arm: place[arm.label]), style)
    seeds = sorted({len(curve.arm.pairs) for curve in curves})
    runs = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    data = [
        {
            "label": curve.arm.label,
            "colour": curve.style.colour,
            "episodes": curve.episodes.tolist(),
            "mean": [float(f"{value:.4g}") for value in curve.mean],
        }
        for curve in curves
    ]
    bands = (
        "simultaneous 95% bands" if any(c.band for c in curves) else "no bands: one run has none"
    )
    shown = Shown(
        f"{name}-curves",
        figures.draw_curves(curves, f"{name}-curves"),
        [_key(curve.arm.label, curve.style) for curve in curves],
        [f"dotted, grey: the {arms[0].baseline}, which does not learn"],
        f"Cumulative regret, mean of {runs} run{'' if runs == '1' else 's'}, {bands}. Lower is "
        "better; a straight line through the origin learns nothing.",
        first="log" if _apart(curves) else "linear",
        scales=True,
        data=data,
    )
    return Part("Regret as users come", figure=shown)


def _apart(curves: Sequence[figures.DrawnCurve]) -> bool:
    """Whether the curves end so far apart that linear axes would hide the lower ones."""
    ends = [float(curve.mean[-1]) for curve in curves if curve.mean[-1] > 0]
    return bool(ends) and max(ends) > 20 * min(ends)


def _finals(arms: Sequence[Arm]) -> Part:
    names = ["learner", "final regret", f"of the {arms[0].baseline}'s", "guarantee", "runs"]

    def rows(same: Sequence[Arm]) -> list[list[Any]]:
        return [
            [
                arm.label,
                arm.interval,
                share(arm.interval, arm.gap * arm.result.completed),
                arm.result.guarantee.brief(),
                str(len(arm.pairs)),
            ]
            for arm in sorted(same, key=lambda arm: float(np.mean(arm.final)))
        ]

    return _by_users("Final regret", names, arms, rows)


def _by_users(
    title: str,
    names: Sequence[str],
    arms: Sequence[Arm],
    table: Callable[[Sequence[Arm]], list[list[Any]]],
) -> Part:
    """A table for the largest K, and for others below it, folded."""
    tables = {f"{title}, K = {users:,}": table(same) for users, same in by_length(arms).items()}
    filled = [Part(name, names=names, rows=rows) for name, rows in tables.items() if rows]
    if not filled:
        return Part(title)
    return replace(filled[0], more=filled[1:])


def _exponent_part(
    rows: Sequence[analysis.Exponent],
    style: dict[str, figures.Style],
    name: str,
    what: str,
    title: str,
) -> Part:
    styled = {row.name: _style_of(row.name, style) for row in rows}
    shown = Shown(
        name,
        figures.draw_exponents(rows, styled, name, what),
        [_key(row.name, styled[row.name]) for row in rows],
        ["line: fit; dotted: the theorem's slope through its middle"],
        "Final regret, 95% intervals over runs, logarithmic axes.",
    )
    table = [
        [
            row.name,
            row.fit.exponent if row.fit else "none",
            "none" if row.stated is None else number(row.stated),
            against_theorem(row),
            row.points,
            row.bound.reference,
        ]
        for row in rows
    ]
    names = ["learner", "fitted exponent", "theorem", "verdict", "fitted to", "reference"]
    return Part(title, figure=shown, names=names, rows=table)


def _style_of(name: str, style: dict[str, figures.Style]) -> figures.Style:
    """The style of an arm, or of a learner: that of its largest epsilon, undashed."""
    if name in style:
        return style[name]
    dark = min((s for label, s in style.items() if label.startswith(f"{name}, ε")), key=_lightness)
    return figures.Style(dark.colour, figures.DASHES[0])


def _lightness(style: figures.Style) -> int:
    return sum(int(style.colour[i : i + 2], 16) for i in (1, 3, 5))


def _epsilon(users: int, arms: Sequence[Arm], style: dict[str, figures.Style], name: str) -> Part:
    title = f"Regret against ε, at K = {users:,}"
    rows = analysis.in_epsilon(arms)
    if not rows:
        return Part(title)
    return _exponent_part(rows, style, f"{name}-epsilon", "ε asked for", title)


def _users(arms: Sequence[Arm], style: dict[str, figures.Style], name: str) -> Part:
    rows, title = analysis.in_users(arms), "Regret against K"
    several = [row for row in rows if len(row.xs) > 1]
    part = (
        _exponent_part(several or rows, style, f"{name}-users", "K", title) if rows else Part(title)
    )
    return part if several else replace(part, figure=None)


def _prices(arms: Sequence[Arm]) -> Part:
    names = ["learner", "times the regret", "of", "common seeds"]

    def rows(same: Sequence[Arm]) -> list[list[Any]]:
        none = "none: no common seeds, or a regret of zero"
        return [
            [
                row.arm.label,
                row.ratio or none,
                row.against.label + ("" if row.counterpart else " (best without privacy here)"),
                str(row.pairs),
            ]
            for row in analysis.prices(same)
        ]

    return _by_users("The price of privacy", names, arms, rows)


def _per_person(arms: Sequence[Arm], style: dict[str, figures.Style], name: str) -> Part:
    title = "Per participation against per person"
    names = ["learner", "people", "regret per participation", "in the last tenth"]
    names += ["regret per person", "guarantee", "ε that a person pays"]

    def rows(same: Sequence[Arm]) -> list[list[Any]]:
        return [
            [
                row.arm.label,
                f"{row.people:,}",
                row.each,
                row.late,
                row.person,
                row.arm.result.guarantee.brief(),
                _paid(row),
            ]
            for row in analysis.per_person(same)
        ]

    part = _by_users(title, names, arms, rows)
    back = [arm for arm in longest(arms) if arm.rule is not None]
    if not part.rows or not back:
        return part
    shown = Shown(
        f"{name}-days",
        figures.draw_days(back, style, f"{name}-days"),
        [_key(arm.label, style[arm.label]) for arm in back],
        [f"dotted, grey: the {arms[0].baseline}"],
        "Regret per participation since the point before, over calendar time, mean over runs. "
        "Learners whose people take part once have no calendar.",
        first="linear",
    )
    text = [
        "Where people come back, a guarantee covers all that one person does, or does in one "
        "period where budgets are renewed. Where everybody "
        "takes part once it covers one participation: somebody who comes more often pays more, "
        "and the last column says how much."
    ]
    return replace(part, figure=shown, text=text)


def _paid(row: analysis.PerPerson) -> str:
    if row.paid is None:
        return "none is finite" if row.arm.result.guarantee.model == "none" else "not worked out"
    rule = row.arm.rule
    period = " in a period" if rule is not None and rule.period else ""
    often = "any number of" if rule is not None and rule.times is None else f"{row.times:,}"
    return f"{number(row.paid)} for {often} times{period}"


def _winnings(arms: Sequence[Arm]) -> Part:
    kinds = {"beats": "good", "worse": "bad", "not decided": "open"}
    return Part(
        f"The smallest K that beats the {arms[0].baseline}",
        names=["learner", f"beats the {arms[0].baseline}", "judged by"],
        rows=[
            [
                row.arm.label,
                {"kind": kinds[row.answer.verdict], "text": row.answer.words()},
                "runs of several K" if row.several else "one curve",
            ]
            for row in analysis.winnings(arms)
        ],
    )


def _contests(users: int, arms: Sequence[Arm]) -> Part:
    return Part(
        f"Who is better, at K = {users:,}",
        text=[
            "Neighbouring epsilons of each learner, and the best learner at each epsilon.",
            "Corrected for all pairs at each epsilon, because these runs also chose the best.",
        ],
        names=["pair", "difference of regret", "p", "p, corrected", "verdict at 5%"],
        rows=[
            [
                f"{row.first.label} or {row.second.label}",
                row.result.difference,
                f"{row.result.p:.2g}",
                f"{row.adjusted:.2g}",
                {"kind": "good" if row.adjusted <= 0.05 else "open", "text": row.verdict},
            ]
            for row in analysis.contests(arms)
        ],
    )


def _users_needed(users: int, arms: Sequence[Arm]) -> Part:
    rows: list[list[Any]] = []
    notes = []
    for row in analysis.users_needed(arms):
        for epsilon, reached, count in row.measured:
            said = reached or f"not within {users:,} by all runs ({count} got there)"
            rows.append([row.name, f"{epsilon:g}", said, "measured"])
        for ahead in row.forecasts:
            kind = "EXTRAPOLATED" if ahead.extrapolated else "interpolated"
            note = {"kind": "open", "text": f"{kind}: users ~ ε^{with_range(ahead.exponent)}"}
            rows.append([row.name, f"{ahead.epsilon:g}", ahead.users, note])
        if row.why_not:
            notes.append(f"No forecast for {row.name}: {row.why_not}.")
    baseline = arms[0].baseline if arms else ""
    return Part(
        f"Users needed until regret is {analysis.AIM:.0%} of the {baseline}'s",
        names=["learner", "ε", "users", "how it is known"],
        rows=rows,
        notes=notes,
    )


def number(x: float | None) -> str:
    """Three digits, with commas, or powers of ten where that is shorter.

    >>> number(12345.0), number(0.012345), number(1.5e7), number(2.0)
    ('12,300', '0.0123', '1.5e7', '2')
    """
    if x is None or math.isnan(x):
        return "?"
    if math.isinf(x):
        return "∞" if x > 0 else "-∞"
    size = -x if x < 0 else x
    if x and (size >= 1e6 or size < 1e-3):
        digits, power = f"{x:.2e}".split("e")
        digits = digits.rstrip("0").rstrip(".")
        return f"{digits}e{int(power)}"
    rounded = float(f"{x:.3g}")
    return f"{rounded:,.0f}" if size >= 100 else f"{rounded:g}"


def with_range(found: Interval) -> str:
    """A number and its interval in one line."""
    if not math.isfinite(found.low):
        return number(found.value)
    return f"{number(found.value)} ({number(found.low)} to {number(found.high)})"


def share(part: Interval, whole: float) -> str:
    """Regret over what the baseline policy would have lost, in percent, with its interval."""
    if whole <= 0:
        return "nothing to lose here"
    value, low, high = part.value / whole, part.low / whole, part.high / whole
    if not math.isfinite(low):
        return f"{value:.3g}" if value > 10 else f"{value:.2%}"
    return f"{value:.2%} ({low:.2%} to {high:.2%})"


def against_theorem(row: analysis.Exponent) -> dict[str, str]:
    """Whether the fitted exponent agrees with the stated one; a bound may be beaten."""
    if row.fit is None:
        return {"kind": "soft", "text": "no fit: some regret is zero"}
    if row.stated is None:
        return {"kind": "soft", "text": "nothing to compare with"}
    found = row.fit.exponent
    if not math.isfinite(found.low):
        return {"kind": "open", "text": "one run: no interval"}
    if found.low <= row.stated <= found.high:
        return {"kind": "good", "text": "agrees"}
    if row.bound.users == row.stated and found.high < row.stated:
        return {"kind": "good", "text": "grows more slowly than the bound"}
    if row.bound.users == row.stated:
        return {
            "kind": "bad",
            "text": "grows faster: not yet in the theorem's range, or not at all",
        }
    flatter = found.low > row.stated
    return {"kind": "open", "text": "flatter in ε" if flatter else "steeper in ε"}
