"""``tacit report``: one self-contained HTML file from a folder of results."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from tacit._version import __version__
from tacit.errors import InvalidInput
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.sentences import NOBODY, over
from tacit.util.files import require_folder, write_text
from tacit_lab.report.analysis import break_even, grouped, prices
from tacit_lab.report.results import Arm, ResultSet, read_results
from tacit_lab.report.sections import by_length, number, section, with_range


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the report on a folder that ``tacit sweep`` or ``tacit run --out`` made.

    Args:
        folder: the results; a folder whose subfolders hold runs is one set of all of them.
        out: the file to write, by default ``report.html`` in the folder.
    """
    target = page_file(folder, out)
    return write_page(target, render(read_results(Path(folder))))


def page_file(folder: str | Path, out: str | Path | None) -> Path:
    """The file of a page: ``report.html`` in the folder, unless another is named."""
    target = Path(folder) / "report.html" if out is None else Path(out)
    if target.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"cannot write the report into {target}: it must end in .html")
    if target.is_dir():
        raise InvalidInput(f"cannot write the report into {target}: it is a folder")
    return target


def write_page(target: Path, text: str) -> Path:
    """Write a page, into a folder that need not be there."""
    require_folder(target.parent)
    write_text(target, text)
    return target


def render(results: ResultSet) -> str:
    """The page as text."""
    problems = grouped(results.arms, lambda arm: arm.problem)
    simulated = all(arm.result.guarantee.simulated for arm in results.arms)
    return rendered(
        "page.html",
        results=results,
        counts=_counts(results),
        headlines=list(_headlines(results)),
        sections=[section(i, name, arms) for i, (name, arms) in enumerate(problems.items())],
        guarantees=_guarantees(results.arms),
        simulated=f"Everything here was simulated: {NOBODY}."
        if simulated
        else "Statements that were made in simulation say so.",
        chosen=_chosen(results.arms),
        failures=[[f["label"], f"{f['seed']}", f["error"]] for f in results.failures],
        made=list(_made(results)),
        js=asset("page.js"),
    )


def rendered(template: str, **facts: Any) -> str:
    """A page of this folder, with the filters, the style and the version that all of them have."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"number": number, "finite": math.isfinite}
    page = environment.get_template(template)
    return page.render(facts, version=__version__, css=asset("page.css"))


def shown_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as pages show it: in brief, in sentences, and as JSON."""
    return {
        "brief": guarantee.brief(),
        "lines": guarantee.statement().split("\n"),
        "json": json.dumps(guarantee.to_json(), indent=2, ensure_ascii=False),
    }


def asset(name: str) -> str:
    """A file that goes into a page."""
    return resources.files("tacit_lab.report").joinpath("assets", name).read_text(encoding="utf-8")


def _counts(results: ResultSet) -> str:
    runs = sum(len(arm.pairs) for arm in results.arms)
    problems = len({arm.problem for arm in results.arms})
    learners = len({arm.learner for arm in results.arms})
    failed = f", {len(results.failures)} failed tasks" if results.failures else ""
    return (
        f"{_many(learners, 'learner')} on {_many(problems, 'problem')}, "
        f"{_many(len(results.arms), 'configuration')}, {_many(runs, 'run')}{failed}"
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _headlines(results: ResultSet) -> Iterator[str]:
    """What a reader in a hurry should know, problem by problem at the largest K."""
    for problem, arms in grouped(results.arms, lambda arm: arm.problem).items():
        users, same = next(iter(by_length(arms).items()))
        learners = [arm for arm in same if not arm.result.reference]
        if not learners:
            continue
        lost = arms[0].result.gap * users
        best = min(learners, key=lambda arm: float(arm.final.mean()))
        share = f", {best.final.mean() / lost:.2%} of the {best.baseline}'s" if lost > 0 else ""
        yield (
            f"{problem}, K = {users:,}: least regret by {best.label} "
            f"({number(float(best.final.mean()))}{share})."
        )
        known = [(row.arm.level, row.ratio, row) for row in prices(same) if row.ratio is not None]
        for epsilon in sorted({level for level, _, _ in known}):
            at = [(ratio, row) for level, ratio, row in known if level == epsilon]
            ratio, row = min(at, key=lambda pair: pair[0].value)
            least = f", the least of {len(at)} learners" if len(at) > 1 else ""
            yield (
                f"Privacy at ε = {epsilon:g}{over(row.arm.result.guarantee)} costs "
                f"{with_range(ratio)} times the regret of {row.against.label}, with "
                f"{row.arm.learner}{least}."
            )
        answers = break_even(arms)
        beaten = sum(row.answer.verdict == "beats" for row in answers)
        if answers:
            yield (
                f"{beaten} of {_many(len(answers), 'learner')} beat the {arms[0].baseline} within "
                f"K = {users:,}, each with 95% confidence."
            )
        weak = [arm.label for arm in learners if arm.result.warning]
        if weak:
            yield (
                f"By the last tenth of the users, not better than the {arms[0].baseline}, or not "
                f"shown to be, or not in every run: {'; '.join(weak)}."
            )
    if results.failures:
        yield f"{_many(len(results.failures), 'task')} failed; see below."


def _guarantees(arms: Sequence[Arm]) -> list[dict[str, Any]]:
    rows = []
    for same in grouped(arms, lambda arm: arm.result.guarantee.digest()).values():
        who = list(dict.fromkeys(f"{arm.label} on {arm.result.problem['name']}" for arm in same))
        lengths = sorted({arm.users for arm in same})
        shown = "; ".join(who[:6]) + (f" and {len(who) - 6} more" if len(who) > 6 else "")
        facts = f"{shown}, K = {', '.join(f'{k:,}' for k in lengths)}"
        rows.append({"who": facts, **shown_guarantee(same[0].result.guarantee)})
    return rows


def _chosen(arms: Sequence[Arm]) -> list[list[Any]]:
    return [
        [
            f"{arm.label}, K = {arm.users:,}, {arm.result.problem['name']}",
            arm.chosen["parameter"],
            f"{arm.chosen['value']}",
            f"{arm.chosen['default']}",
            ", ".join(f"{c['value']}: {number(c['mean'])}" for c in arm.chosen["candidates"]),
            f"{arm.chosen['brief']}; {arm.chosen['deviation']}",
        ]
        for arm in arms
        if arm.chosen is not None
    ]


def _made(results: ResultSet) -> Iterator[list[str]]:
    yield ["tacit that ran it", ", ".join(results.versions)]
    yield ["tacit that wrote this", __version__]
    seeds = sorted({pair for arm in results.arms for pair in arm.pairs})
    yield ["seeds (root, run)", _ranges(seeds)]
    for made in results.made_with:
        for kind, values in made.items():
            yield [kind, ", ".join(f"{name} {value}" for name, value in values.items())]
    seconds = sum(arm.result.seconds for arm in results.arms)
    yield ["time of all runs", f"{number(seconds)} s"]


def _ranges(pairs: Sequence[tuple[int, int]]) -> str:
    """Seeds in few words: runs of consecutive ones are joined."""
    roots = sorted({root for root, _ in pairs})
    runs = sorted({run for _, run in pairs})
    joined = []
    for values in (roots, runs):
        consecutive = values == list(range(values[0], values[-1] + 1)) and len(values) > 1
        text = f"{values[0]} to {values[-1]}" if consecutive else ", ".join(map(str, values))
        joined.append(text)
    return f"root {joined[0]}; run {joined[1]}"
