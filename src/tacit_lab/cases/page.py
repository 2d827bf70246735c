"""One page about a study: values against people and epsilon, what is beaten, and what is not."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit._version import __version__
from tacit.errors import need
from tacit.privacy.sentences import NOBODY
from tacit_lab.cases.outcome import RULES, Outcome, Rule, needed
from tacit_lab.report.page import asset, templates
from tacit_lab.report.sections import number


def write_study(
    path: str | Path,
    title: str,
    outcomes: Sequence[Outcome],
    references: Mapping[str, float],
    limit: str,
    rule: Rule,
    notes: Sequence[str],
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]] | None = None,
) -> Path:
    """Write the page.

    Args:
        path: of the file.
        title: of the study.
        outcomes: what was found.
        references: values without learning, and at best.
        limit: the reference that is to be beaten.
        rule: what beating it means.
        notes: what a reader has to know.
        tables: further tables, by heading: names of the columns and rows.
    """
    need("a page about a study", "report")
    bar = references[limit]
    rows = [
        [
            one.agent,
            f"{one.people:,}",
            f"{one.epsilon:g}",
            one.mean,
            f"{one.beats(bar)} of {len(one.values)}",
        ]
        for one in outcomes
    ]
    from_ = [
        [agent, f"{epsilon:g}", "never, up to what was tried" if n is None else f"{n:,}"]
        for (agent, epsilon), n in needed(outcomes, bar, rule).items()
    ]
    page = (
        templates()
        .get_template("study.html")
        .render(
            title=title,
            version=__version__,
            picture=_picture(outcomes, references),
            references=[[name, number(value)] for name, value in references.items()],
            rows=rows,
            from_=from_,
            limit=limit,
            rule=RULES[rule],
            notes=[*notes, f"Everything here was simulated: {NOBODY}."],
            tables=tables or {},
            css=asset("page.css"),
        )
    )
    target = Path(path)
    part = target.with_name(target.name + ".part")
    part.write_text(str(page), encoding="utf-8")
    part.replace(target)
    return target


def _picture(outcomes: Sequence[Outcome], references: Mapping[str, float]) -> str:
    """Values against epsilon, a line per agent and number of people, as SVG."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.add_subplot()
    for name, value in references.items():
        axes.axhline(value, color="0.6", lw=1, ls=":")
        axes.annotate(name, (0.01, value), xycoords=("axes fraction", "data"), fontsize=8)
    for key in dict.fromkeys((o.agent, o.people) for o in outcomes):
        same = sorted((o for o in outcomes if (o.agent, o.people) == key), key=lambda o: o.epsilon)
        x, mean = [o.epsilon for o in same], [o.mean for o in same]
        middle = [m.value for m in mean]
        axes.plot(x, middle, "o-", label=f"{key[0]}, {key[1]:,} people")
        if all(len(o.values) > 1 for o in same):
            axes.fill_between(x, [m.low for m in mean], [m.high for m in mean], alpha=0.2)
    axes.set_xscale("log")
    axes.set_xlabel("epsilon")
    axes.set_ylabel("value of the policy")
    axes.legend(fontsize=8)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
