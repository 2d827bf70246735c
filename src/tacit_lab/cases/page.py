"""One page about a case study: values against people and epsilon, and what they beat."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.errors import need
from tacit.privacy.sentences import NOBODY
from tacit.util.files import read_json
from tacit.util.intervals import Interval
from tacit_lab.cases.outcome import FILE
from tacit_lab.report.page import page_file, rendered, write_page
from tacit_lab.report.sections import number


def write_study(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the page about a folder that ``tacit reproduce --out`` made of the coach or clinic."""
    need("a page about a study", "report")
    findings = read_json(Path(folder) / FILE, f"{folder} holds no case study: it has no {FILE}")
    references = findings["references"]
    rows, from_ = [], []
    for one in findings["outcomes"]:
        level, wins = f"{one['epsilon']:g}", f"{one['beats']} of {one['runs']}"
        rows.append([one["agent"], f"{one['people']:,}", level, _mean(one), wins])
    for one in findings["people_needed"]:
        people = "never, up to what was tried" if one["people"] is None else f"{one['people']:,}"
        from_.append([one["agent"], f"{one['epsilon']:g}", people])
    tables = {
        heading: (names, [[_cell(cell) for cell in row] for row in cells])
        for heading, (names, cells) in findings["tables"].items()
    }
    page = rendered(
        "study.html",
        title=f"The {findings['study']}",
        picture=_picture(findings["outcomes"], references),
        references=[[name, number(value)] for name, value in references.items()],
        rows=rows,
        from_=from_,
        limit=findings["beat"],
        rule=findings["rule"],
        notes=[*findings["notes"], f"Everything here was simulated: {NOBODY}."],
        tables=tables,
    )
    return write_page(page_file(folder, out), page)


def _mean(outcome: Mapping[str, Any]) -> Interval:
    return _interval(outcome["value"]["mean"], *outcome["value"]["ci95"])


def _cell(cell: Any) -> Any:
    return _interval(**cell) if isinstance(cell, dict) else cell


def _interval(value: float, low: float | None, high: float | None) -> Interval:
    """As it was; one run has no bounds."""
    return Interval(value, -math.inf if low is None else low, math.inf if high is None else high)


def _picture(outcomes: Sequence[Mapping[str, Any]], references: Mapping[str, float]) -> str:
    """Values against epsilon, a line per agent and number of people, as SVG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for name, value in references.items():
        axes.axhline(value, color="0.6", lw=1, ls=":")
        axes.annotate(name, (0.01, value), xycoords=("axes fraction", "data"), fontsize=8)
    for agent, people in dict.fromkeys((o["agent"], o["people"]) for o in outcomes):
        same = [o for o in outcomes if (o["agent"], o["people"]) == (agent, people)]
        same.sort(key=lambda o: o["epsilon"])
        x, mean = [o["epsilon"] for o in same], [_mean(o) for o in same]
        axes.plot(x, [m.value for m in mean], "o-", label=f"{agent}, {people:,} people")
        if all(o["runs"] > 1 for o in same):
            axes.fill_between(x, [m.low for m in mean], [m.high for m in mean], alpha=0.2)
    axes.set(xscale="log", xlabel="epsilon", ylabel="value of the policy")
    axes.legend(fontsize=8)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
