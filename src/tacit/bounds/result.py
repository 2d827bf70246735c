"""A regret bound as a number, what of it does not stand, and whether it says anything."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Kind = Literal["proof", "order", "none"]

KINDS = {
    "proof": "the explicit form of the proof",
    "order": "the order with constant 1, not a number of the theorem",
}
"""Where an upper bound comes from, in words."""


class Statement(NamedTuple):
    """What the explicit form of a proof says of a bound agent; None where nothing is proved."""

    upper: float | None
    failure: float | None = None
    lower: float | None = None
    erratum: str = ""


@dataclass(frozen=True, kw_only=True)
class RegretBound:
    """What is proved, or claimed, about the regret of an agent on a problem after K episodes.

    Attributes:
        episodes: K.
        upper: the regret is at most this; None where nothing is stated.
        lower: on some problem of this size every learner of this kind loses at least this; None
            where nothing is stated, or the theorem does not reach so few episodes.
        kind: where both come from: the explicit form of a "proof" with all its constants, the
            "order" with constant 1, or "none".
        theorem: who states it, or why nobody does.
        failure: probability with which the upper bound may fail; None where it is not said.
        erratum: what of it does not stand, and where that is shown; empty if nothing is known.
        worst: what the worst policy loses in all.
        worst_exact: whether that is exact; else no policy loses more.
    """

    episodes: int
    upper: float | None
    lower: float | None
    kind: Kind
    theorem: str
    failure: float | None
    erratum: str
    worst: float
    worst_exact: bool

    @property
    def vacuous(self) -> bool:
        """Whether every policy has that little regret: an upper bound that says nothing."""
        return self.upper is not None and self.upper >= self.worst

    def statement(self) -> str:
        """All of it in a sentence or three."""
        if self.upper is None:
            text = f"Regret: no bound ({self.theorem}"
            text += f"; {self.erratum})." if self.erratum else ")."
        else:
            worst = f"the worst policy loses {self.worst:.3g}"
            if not self.worst_exact:
                worst = f"no policy loses more than {self.worst:.3g}"
            sure = "" if self.failure is None else f" with probability {1 - self.failure:g}"
            size = "of order" if self.kind == "order" else "at most"
            text = (
                f"Regret: {size} {self.upper:.3g} after {self.episodes:,} episodes{sure}, says "
                f"{self.theorem} ({KINDS[self.kind]}); "
                f"{'vacuous, as ' if self.vacuous else ''}{worst}."
            )
        if self.lower is not None:
            text += f" Some problem of this size costs every such learner {self.lower:.3g} or more."
        if self.upper is not None and self.erratum:
            text += f" Erratum: {self.erratum}."
        return text

    def to_json(self) -> dict[str, Any]:
        """All fields, and whether it is vacuous."""
        return {**dataclasses.asdict(self), "vacuous": self.vacuous}
