"""The account of a data set: charged before a row is read, and never beyond its budget.

An account is a file. That all releases about a data set are charged to one and the same file is
owed by whoever holds the data: nobody can see that a log or a mapping is a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tacit.errors import BudgetExceeded, InvalidInput
from tacit.logs.mapping import LogMapping
from tacit.privacy.events import Event
from tacit.privacy.filter import Budget, BudgetExhausted, PrivacyFilter
from tacit.privacy.ledger import Ledger, head_path


@dataclass(frozen=True)
class DatasetBudget:
    """The ledger file of a data set; the mapping that comes first fixes its budget.

    Attributes:
        path: of the ledger.
        mapped: names the data set and its budget.
    """

    path: str | Path
    mapped: LogMapping

    def charge(self, event: Event, what: str) -> None:
        """Record a release for good; when this returns the log may be read, and its noise drawn.

        One that does not fit is refused, and nothing is charged. A cheaper one may still fit: what
        is asked for never depends on data, so a refusal tells nothing, and the account stays open.
        """
        with self._open(event) as ledger:
            self._check(ledger.filter, event)
            ledger.spend(event.charge(), f"{len(ledger.entries) + 1} {what}")

    def _open(self, event: Event) -> Ledger:
        name, budget, path = f"log {self.mapped.name}", Budget(*self.mapped.budget), Path(self.path)
        if not path.exists() and not head_path(path).exists():
            self._check(PrivacyFilter(budget), event)  # a refused release leaves no file
            return Ledger.create(path, budget=budget, task=name, clock=_now)
        ledger = Ledger.open(path, task=name, clock=_now)
        own = ledger.filter.budget
        if (own.epsilon, own.delta) != (budget.epsilon, budget.delta):
            ledger.close()
            raise InvalidInput(
                f"{path.name} was created with a budget of epsilon {own.epsilon:g}, "
                f"delta {own.delta:g}, and the mapping says {budget.epsilon:g} and "
                f"{budget.delta:g}; a budget cannot be changed after the fact: put the old one "
                "into the mapping"
            )
        return ledger

    def _check(self, kept: PrivacyFilter, event: Event) -> None:
        """On a copy of the account: a refusal closes the copy only."""
        try:
            kept.price(event.charge())
        except BudgetExhausted as refused:
            raise BudgetExceeded(
                f"refused: this release would take data set {self.mapped.name!r} beyond its budget "
                f"of epsilon {kept.budget.epsilon:g}, delta {kept.budget.delta:g}; spent so far: "
                f"{refused.spent}, asked for: {refused.asked}. Nothing was charged or released"
            ) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
