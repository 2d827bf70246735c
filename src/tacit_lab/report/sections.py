"""The sections of a report: one per problem, each with its pictures and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from tacit.util.intervals import Interval
from tacit_lab.report import analysis, figures
from tacit_lab.report.results import Arm, label_of

T = TypeVar("T")


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


def _table(
    title: str, rows: Iterable[T], columns: Mapping[str, Callable[[T], Any]], **more: Any
) -> Part:
    """What each column says of each row."""
    cells = [[cell(row) for cell in columns.values()] for row in rows]
    return Part(title, names=[*columns], rows=cells, **more)


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
        f"{label_of(first['name'], first['parameters'])}. {best} "
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
    lengths = () if style.dash == figures.DASHES[0] else style.dash[1]
    dash = " ".join(f"{x * 1.5:g}" for x in lengths)
    return {"label": label, "colour": style.colour, "dash": dash}


def _curves(arms: Sequence[Arm], style: dict[str, figures.Style], name: str) -> Part:
    place = {label: i for i, label in enumerate(style)}
    curves = figures.curves_of(sorted(longest(arms), key=lambda arm: place[arm.label]), style)
    seeds = sorted({len(curve.arm.pairs) for curve in curves})
    runs = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    data = []
    for curve in curves:
        means = [float(f"{value:.4g}") for value in curve.mean]
        look = {"label": curve.arm.label, "colour": curve.style.colour}
        data.append({**look, "episodes": curve.episodes.tolist(), "mean": means})
    ends = [float(curve.mean[-1]) for curve in curves if curve.mean[-1] > 0]
    several = any(curve.band for curve in curves)
    bands = "simultaneous 95% bands" if several else "no bands: one run has none"
    shown = Shown(
        f"{name}-curves",
        figures.draw_curves(curves, f"{name}-curves"),
        [_key(curve.arm.label, curve.style) for curve in curves],
        [f"dotted, grey: the {arms[0].baseline}, which does not learn"],
        f"Cumulative regret, mean of {runs} run{'' if runs == '1' else 's'}, {bands}. Lower is "
        "better; a straight line through the origin learns nothing.",
        first="log" if ends and max(ends) > 20 * min(ends) else "linear",
        scales=True,
        data=data,
    )
    return Part("Regret as users come", figure=shown)


def _finals(arms: Sequence[Arm]) -> Part:
    return _by_users(
        "Final regret",
        arms,
        lambda same: sorted(same, key=lambda arm: float(np.mean(arm.final))),
        {
            "learner": lambda arm: arm.label,
            "final regret": lambda arm: arm.interval,
            f"of the {arms[0].baseline}'s": lambda arm: share(
                arm.interval, arm.result.gap * arm.result.completed
            ),
            "guarantee": lambda arm: arm.result.guarantee.brief(),
            "runs": lambda arm: str(len(arm.pairs)),
        },
    )


def _by_users(
    title: str,
    arms: Sequence[Arm],
    rows: Callable[[Sequence[Arm]], Iterable[T]],
    columns: Mapping[str, Callable[[T], Any]],
) -> Part:
    """A table for the largest K, and for others below it, folded."""
    tables = [
        _table(f"{title}, K = {users:,}", rows(same), columns)
        for users, same in by_length(arms).items()
    ]
    filled = [table for table in tables if table.rows]
    return replace(filled[0], more=filled[1:]) if filled else Part(title)


def _exponent_part(
    rows: Sequence[analysis.Exponent],
    style: dict[str, figures.Style],
    name: str,
    what: str,
    title: str,
) -> Part:
    if not rows:
        return Part(title)
    styled = {row.name: _style_of(row.name, style) for row in rows}
    shown = Shown(
        name,
        figures.draw_exponents(rows, styled, name, what),
        [_key(row.name, styled[row.name]) for row in rows],
        ["line: fit; dotted: the theorem's slope through its middle"],
        "Final regret, 95% intervals over runs, logarithmic axes.",
    )
    columns: dict[str, Callable[[analysis.Exponent], Any]] = {
        "learner": lambda row: row.name,
        "fitted exponent": lambda row: row.fit.exponent if row.fit else "none",
        "theorem": lambda row: "none" if row.stated is None else number(row.stated),
        "verdict": against_theorem,
        "fitted to": lambda row: row.points,
        "reference": lambda row: row.bound.reference,
    }
    if any(row.stated_regret for row in rows):
        columns["bound at K"] = stated_regret
    return _table(title, rows, columns, figure=shown)


def stated_regret(row: analysis.Exponent) -> str:
    """The bound as a number, and how much it says."""
    bound = row.stated_regret
    if bound is None or bound.upper is None:
        return "none"
    order = " (order with constant 1)" if bound.kind == "order" else ""
    return f"{bound.upper:.3g}{order}{', vacuous' if bound.vacuous else ''}"


def _style_of(name: str, style: dict[str, figures.Style]) -> figures.Style:
    """The style of an arm, or of a learner: that of its largest epsilon, undashed."""
    if name in style:
        return style[name]
    colours = [own.colour for label, own in style.items() if label.startswith(f"{name}, ε")]
    return figures.Style(min(colours, key=lambda x: sum(figures.parts(x))), figures.DASHES[0])


def _epsilon(users: int, arms: Sequence[Arm], style: dict[str, figures.Style], name: str) -> Part:
    rows, title = analysis.in_epsilon(arms), f"Regret against ε, at K = {users:,}"
    return _exponent_part(rows, style, f"{name}-epsilon", "ε asked for", title)


def _users(arms: Sequence[Arm], style: dict[str, figures.Style], name: str) -> Part:
    rows, title = analysis.in_users(arms), "Regret against K"
    several = [row for row in rows if len(row.xs) > 1]
    part = _exponent_part(several or rows, style, f"{name}-users", "K", title)
    return part if several else replace(part, figure=None)


def _prices(arms: Sequence[Arm]) -> Part:
    none, best = "none: no common seeds, or a regret of zero", " (best without privacy here)"
    return _by_users(
        "The price of privacy",
        arms,
        analysis.prices,
        {
            "learner": lambda row: row.arm.label,
            "times the regret": lambda row: row.ratio or none,
            "of": lambda row: row.against.label + ("" if row.counterpart else best),
            "common seeds": lambda row: str(row.pairs),
        },
    )


def _per_person(arms: Sequence[Arm], style: dict[str, figures.Style], name: str) -> Part:
    part = _by_users(
        "Per participation against per person",
        arms,
        analysis.per_person,
        {
            "learner": lambda row: row.arm.label,
            "people": lambda row: f"{row.people:,}",
            "regret per participation": lambda row: row.each,
            "in the last tenth": lambda row: row.late,
            "regret per person": lambda row: row.person,
            "guarantee": lambda row: row.arm.result.guarantee.brief(),
            "ε that a person pays": _paid,
        },
    )
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
    return _table(
        f"The smallest K that beats the {arms[0].baseline}",
        analysis.break_even(arms),
        {
            "learner": lambda row: row.arm.label,
            f"beats the {arms[0].baseline}": lambda row: _word(
                kinds[row.answer.verdict], row.answer.words()
            ),
            "judged by": lambda row: "runs of several K" if row.several else "one curve",
        },
    )


def _word(kind: str, text: str) -> dict[str, str]:
    """A cell in the colour of its kind: good, bad, open or soft."""
    return {"kind": kind, "text": text}


def _contests(users: int, arms: Sequence[Arm]) -> Part:
    return _table(
        f"Who is better, at K = {users:,}",
        analysis.pairwise_tests(arms),
        {
            "pair": lambda row: f"{row.first.label} or {row.second.label}",
            "difference of regret": lambda row: row.result.difference,
            "p": lambda row: f"{row.result.p:.2g}",
            "p, corrected": lambda row: f"{row.adjusted:.2g}",
            "verdict at 5%": lambda row: _word(
                "good" if row.adjusted <= 0.05 else "open", row.verdict
            ),
        },
        text=[
            "Neighbouring epsilons of each learner, and the best learner at each epsilon.",
            "Corrected for all pairs at each epsilon, because these runs also chose the best.",
        ],
    )


def _users_needed(users: int, arms: Sequence[Arm]) -> Part:
    rows: list[list[Any]] = []
    notes = []
    for row in analysis.users_needed(arms):
        for epsilon, reached, count in row.measured:
            shown = reached or f"not within {users:,} by all runs ({count} got there)"
            rows.append([row.name, f"{epsilon:g}", shown, "measured"])
        for ahead in row.forecasts:
            kind = "EXTRAPOLATED" if ahead.extrapolated else "interpolated"
            note = _word("open", f"{kind}: users ~ ε^{with_range(ahead.exponent)}")
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


def with_range(estimate: Interval) -> str:
    """A number and its interval in one line."""
    if not math.isfinite(estimate.low):
        return number(estimate.value)
    return f"{number(estimate.value)} ({number(estimate.low)} to {number(estimate.high)})"


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
        return _word("soft", "no fit: some regret is zero")
    if row.stated is None:
        return _word("soft", "nothing to compare with")
    exponent = row.fit.exponent
    if not math.isfinite(exponent.low):
        return _word("open", "one run: no interval")
    if exponent.low <= row.stated <= exponent.high:
        return _word("good", "agrees")
    if row.bound.users != row.stated:
        return _word("open", "flatter in ε" if exponent.low > row.stated else "steeper in ε")
    if exponent.high < row.stated:
        return _word("good", "grows more slowly than the bound")
    return _word("bad", "grows faster: not yet in the theorem's range, or not at all")
