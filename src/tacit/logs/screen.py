"""What the screen of whoever holds a log shows of it: exact numbers, which are in no file.

They say how well the mapping fits the log. They are facts about people, without noise, so they are
neither written anywhere nor part of ``--json``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from tacit.logs.mapping import Discretizer, LogMapping

MARK = "(exact, on this screen only)"
"""Ends every line that depends on what people did beyond the release."""

EARLY = "lie before the first step"
"""Why a row is left out whose number is below that of the first step."""

LABELS = 5
"""Declared labels that a sentence names."""


@dataclass
class ExactNumbers:
    """Exact numbers about a log.

    Attributes:
        rows: of the log, whatever is in them.
        kept: rows that count.
        people: that have a row, also those beyond the declared number.
        left: how many of the other rows have which reason, each the first that it has.
        columns: by role and name of a column, how many of its values do not fit in which way.
        stopped: the error at which reading broke off; "" if it reached the end.
    """

    rows: int = 0
    kept: int = 0
    people: int = 0
    left: Counter[str] = field(default_factory=Counter)
    columns: defaultdict[tuple[str, str], Counter[str]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    stopped: str = ""

    def lines(self, mapped: LogMapping) -> list[str]:
        """All of it as sentences, which say what to do about it; every line ends with the mark."""
        return [f"{line} {MARK}" for line in (*self._totals(mapped), *self._misfits(mapped))]

    def _totals(self, mapped: LogMapping) -> Iterator[str]:
        yield f"rows: {self.rows:,}"
        yield f"rows that count: {self.kept:,}"
        yield f"people: {self.people:,}"
        if self.people > mapped.task.users:
            yield (
                f"people beyond the declared number of {mapped.task.users:,}, who are left out: "
                f"{self.people - mapped.task.users:,}"
            )
        if self.stopped:
            yield (
                f"reading broke off ({self.stopped}): only what came before is in the release; "
                "mend the file, and try it with --simulated, which charges nothing"
            )
        if not self.kept:
            yield (
                "no row counts, so the release holds noise alone; it is charged all the same, for "
                "whether there is one must not depend on anybody's rows. Mend the mapping, and try "
                "it with --simulated, which charges nothing"
            )
        hints = {EARLY: "; let [task] first_step be the number of the first step"}
        for why, count in self.left.items():
            if count:
                yield f"rows that {why}: {count:,}{hints.get(why, '')}"
        others = self.rows - self.kept - sum(self.left.values())
        if others:
            yield f"rows that are double, after an end or of people left out: {others:,}"

    def _misfits(self, mapped: LogMapping) -> Iterator[str]:
        rows = self.rows - self.left["have no person"] - self.left["have too many or too few cells"]
        tables = {f"[[state]] {i + 1}": cells for i, cells in enumerate(mapped.states)}
        tables["[action]"] = mapped.action
        for (role, name), counts in self.columns.items():
            missing, unfit = _fates(role, tables.get(role), mapped)
            for count, fate in ((counts["missing"], missing), (counts["unfit"], unfit)):
                if count:
                    yield f"column {name!r}, {role}: {count:,} of {rows:,} values {fate}"
            if counts["alike"]:
                yield (
                    f"column {name!r}, {role}: {counts['alike']:,} of them would be declared if "
                    "case and spaces did not matter; they do: spell labels as the log does"
                )
            if counts["cut"]:
                low, high = mapped.reward_range
                yield (
                    f"column {name!r}, {role}: {counts['cut']:,} of {rows:,} values lie outside "
                    f"of {low:g} to {high:g} and were cut; let [reward] range hold every reward "
                    "that can occur"
                )
            if role == "step" and mapped.steps == "numbered" and rows and not counts["first"]:
                yield (
                    f"column {name!r}, {role}: no row has the number {mapped.first_step}; let "
                    "[task] first_step be the number of the first step"
                )


def _fates(role: str, cells: Discretizer | None, mapped: LogMapping) -> tuple[str, str]:
    """What becomes of missing values of a column, and what is wrong with those that do not fit."""
    if cells is not None:
        lost = "their rows teach nothing" if role == "[action]" else "their rows do not count"
        fate = f"count as {cells.names[cells.other]!r}" if cells.other >= 0 else lost
        if cells.kind == "bins":
            return f"are missing: {fate}", f"are no number: {fate}"
        if cells.kind == "size":
            wanted = f"no whole numbers from 0 to {len(cells.names) - 1}"
            return f"are missing: {fate}", f"are {wanted}: {fate}; let {role} size hold them all"
        more = ", ..." if len(cells.names) > LABELS else ""
        labels = ", ".join(cells.names[:LABELS]) + more
        return f"are missing: {fate}", (
            f"are none of the declared labels ({labels}): {fate}; labels are compared letter by "
            "letter, so spell them as the log does"
        )
    if role == "step":
        kinds = {"dated": "date", "ordered": "number", "numbered": "whole number"}
        more = "; say [task] date_format" if mapped.steps == "dated" else ""
        lost = "their rows do not count"
        return f"are missing: {lost}", f"are no {kinds[mapped.steps]}: {lost}{more}"
    if role == "reward":
        value = f"count as {mapped.missing_reward:g}, which [reward] missing says"
        if math.isnan(mapped.missing_reward):
            value = "such rows teach nothing, unless [reward] missing says what they count as"
        return f"are missing: {value}", f"are no number: {value}"
    if role == "propensity":
        lost = "by weights, their episodes count for nothing"
        return f"are missing: {lost}", f"are no chance above 0 and at most 1: {lost}"
    return "are missing: no end", "are neither true nor false: no end"
