"""Reports of a search: what one episode returned, as it is or as one randomized number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.statistics.search import RoundedReturn
from tacit.wire import messages
from tacit.wire.report_rules import sliding_of

if TYPE_CHECKING:
    from tacit.privacy.noise import Noise
    from tacit.publication import Publication
    from tacit.task.task import Task
    from tacit.trajectory import Trajectory


class RawReturn:
    """The clipped return itself, for an operator whom the user trusts."""

    def answer(self, lived: Trajectory, publication: Publication, coin: int) -> Any:
        """Eight bytes."""
        return messages.pack_return(float(lived.rewards[0]))

    def message(self, answer: Any, publication: Publication, coin: int, noise: Noise) -> str:
        """As it is."""
        return str(answer)


class Number:
    """One output of the randomizer that the rules name, about the return in the window."""

    def __init__(self, task: Task, rules: Mapping[str, Any]) -> None:
        self._randomizer = sliding_of(rules)
        self._statistic = RoundedReturn(task, self._randomizer.largest)
        self.epsilon = task.participations * self._randomizer.epsilon

    def answer(self, lived: Trajectory, publication: Publication, coin: int) -> Any:
        """To which place the return was rounded."""
        contribution = np.zeros(2, dtype=np.int64)
        self._statistic.contribute(lived, publication, coin, contribution)
        return int(contribution[1])

    def message(self, answer: Any, publication: Publication, coin: int, noise: Noise) -> str:
        """One output."""
        return messages.pack_message(noise.randomize(self._randomizer, int(answer)))
