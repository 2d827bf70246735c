"""What LDP-OBI and LDP-PSRL share: tables of counts behind one of the paper's four randomizers."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from tacit.agents import paper_constants
from tacit.agents.base import Ranges, TableAgent
from tacit.agents.published import PublishedAgent
from tacit.errors import InvalidInput
from tacit.privacy import Privatizer
from tacit.privacy.bounded import paper_radius
from tacit.privacy.local.additive import LocalAdditive, least_scales, proportional_radii
from tacit.privacy.local.response import LocalResponse, differing_bits, response_bits
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task

Randomizer: TypeAlias = Literal["laplace", "gaussian", "randomized-response", "bounded"]


class LocalTableAgent(TableAgent, PublishedAgent):
    """One whose users randomize their counts (docs/papers/tabular_ldp.md#randomizers)."""

    models: ClassVar[tuple[str, ...]] = ("local",)
    tables: ClassVar[int]
    """Tables that get noise, each of which one user moves by 2H at most in the paper's count."""

    ranges: ClassVar[Ranges] = {
        "delta": {"low": 0.0, "high": 1.0, "high_open": True},
        "alpha": {"low": 1.0, "low_open": True},
    }

    epsilon: float
    delta: float
    randomizer: Randomizer
    constant: Literal["proof", "proposition"]

    def __post_init__(self) -> None:
        super().__post_init__()
        pure = self.randomizer in ("laplace", "randomized-response")
        if not pure and self.delta == 0.0:
            raise InvalidInput(f"{self.randomizer} noise needs a delta > 0, for example 1e-5")
        if pure and self.delta > 0.0:
            raise InvalidInput(f"{self.randomizer} is purely epsilon-private: leave delta out")
        if self.constant != "proof" and (self.randomizer != "gaussian" or not self.published):
            raise InvalidInput(
                "constant is that of the published Gaussian noise: choose randomizer gaussian and "
                "calibration corrected or paper, or leave constant out"
            )

    def privatizer(self, statistic: VisitCounts, task: Task) -> Privatizer[Any]:
        """The chosen randomizer; corrected, published noise is raised to the least that is enough.

        Laplace noise and randomized response are private as claimed: for people who take part once
        nothing is raised.
        """
        asked, times = (float(self.epsilon), float(self.delta)), task.participations
        if self.randomizer == "randomized-response":
            bits = None
            if self.published:
                per_bit = paper_constants.tabular_bit(task.horizon, asked[0], self.tables)
                published = per_bit * differing_bits(statistic)
                if not self.corrected or published * times <= asked[0]:
                    bits = response_bits(statistic, published)
            return LocalResponse(statistic, task, bits, requested_epsilon=asked[0])
        scales = None
        if self.published:
            scales = self.published_scales(statistic, task)
        if scales is not None and self.corrected:
            least = least_scales(statistic, self.randomizer, *asked, times)
            scales = {name: max(scale, least[name]) for name, scale in scales.items()}
        return LocalAdditive(statistic, task, self.randomizer, scales, requested=asked)

    def published_scales(self, statistic: VisitCounts, task: Task) -> dict[str, float]:
        """By table; the bounded radius has C = 1 and the budget of one step and table."""
        H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
        if self.randomizer == "bounded":
            radius = paper_radius(self.epsilon / (self.tables * H), self.delta, S, A)
            return proportional_radii(statistic, radius)
        if self.randomizer == "laplace":
            scale = paper_constants.tabular_laplace(H, self.epsilon, self.tables)
        else:
            c = paper_constants.tabular_gaussian(self.delta, self.constant)
            scale = c * self.tables / 3 * H / self.epsilon
        return {block.name: scale for block in statistic.layout.blocks}

    def raised_noise(self, privatizer: Privatizer[Any], task: Task) -> tuple[str, ...]:
        """The note on noise that is more than published."""
        if not isinstance(privatizer, LocalAdditive) or not self.published:
            return ()
        published = self.published_scales(VisitCounts(task), task)["visits"]
        place = f"docs/papers/tabular_ldp.md#{'e7' if self.randomizer == 'bounded' else 'e2'}"
        return self.raised(privatizer.scales["visits"] / published, place)
