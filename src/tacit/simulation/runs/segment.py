"""Runs of searches whose people send reports of their own: all people of a batch together."""

from __future__ import annotations

import numpy as np

from tacit.privacy.local.one_number import OneNumber
from tacit.simulation.runs.base import SegmentRun
from tacit.statistics.search import RoundedReturn


class ReportRun(SegmentRun):
    """As the driver to the last bit: every report is drawn, none is summed up before."""

    def _serve(self, count: int) -> None:
        """Some of the users of the newest publication, each with a report of its own."""
        learner, first = self.learner, int(self.score.at[0])
        statistic, privatizer = self.agent.statistic, self.agent.privatizer
        publication = learner.publication
        assert publication is not None and isinstance(statistic, RoundedReturn)
        assert isinstance(privatizer, OneNumber)
        lives = self.users.live(publication.policy, first, count, self.score)
        people = np.arange(first, first + count)
        places = statistic.shifts(lives, publication, people)
        outputs = privatizer.randomizer.encode_many(places, self._noise)
        privatizer.absorb_outputs(learner.secret, outputs, publication, people, "simulated")
        learner.served += count
        learner.left -= count
