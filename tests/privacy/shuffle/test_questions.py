"""Behind a shuffler all steps are asked about alike; no other question is asked or paid for."""

from functools import partial

import numpy as np
import pytest

import tacit
from tacit.agents import ShuffleOBI
from tacit.errors import InvalidInput
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP, WEIGHT_STEPS
from tacit.policies.tabular import TabularPolicy
from tacit.privacy import SimulatedNoise
from tacit.privacy.local.one_cell import OneCell
from tacit.publication import Publication
from tacit.statistics.one_step import OneStep
from tacit.trajectory import Trajectory

tight = partial(ShuffleOBI, calibration="tight")
PROBLEM = tacit.problem("random-mdp", seed=21)
TASK = PROBLEM.task(users=1000)
IDLE = Trajectory(np.zeros(3, dtype=np.int64), np.zeros(2, dtype=np.int64), np.zeros(2))


def asking(kind: int) -> Publication:
    """Everybody is asked that question about the first step."""
    occupancy = np.full((2, 2), WEIGHT_STEPS, dtype=np.int64)
    questions = (np.arange(2 * KINDS) >= kind).astype(np.float64)
    context = {"occupancy": occupancy, "questions": questions}
    return Publication(0, TabularPolicy(np.zeros((2, 2), dtype=np.int64)), context)


def encode(privatizer, publication: Publication) -> None:
    row = np.zeros(privatizer.statistic.layout.size, dtype=np.int64)
    privatizer.statistic.contribute(IDLE, publication, 0, row)
    privatizer.encode(row, publication, SimulatedNoise(np.random.default_rng(0)))


@pytest.mark.parametrize("steps", ["own", "assigned"])
def test_the_statement_names_what_is_asked_only(steps) -> None:
    bound = tight(1.0, batch=50, steps=steps).bind(TASK)
    for said in (bound.guarantee, bound.guarantee.also[0]):
        assert {name.split()[0] for name in said.noise} == {"step", "reward"}
        assert "(move)" not in said.mechanism and "(step)" in said.mechanism
    assert len(bound.privatizer.local.channels()) == 2
    joint = bound.privatizer.local.oracles[STEP].variance_outside
    assert float(bound.privatizer.law(10).variance("moves")) == pytest.approx(20 * joint)


def test_published_shares_of_questions_are_refused() -> None:
    """They would split a batch into crowds of other sizes than those accounted for."""
    shuffler = tight(1.0, batch=50, steps="assigned").bind(TASK).privatizer
    with pytest.raises(InvalidInput, match="asked about alike"):
        encode(shuffler, asking(STEP))


def test_a_question_beyond_the_guarantee_is_refused() -> None:
    cell = OneCell(OneStep(TASK), TASK, requested_epsilon=1.0, kinds=(STEP, REWARD))
    encode(cell, asking(STEP))
    encode(cell, asking(REWARD))
    with pytest.raises(InvalidInput, match="a question about moves was asked"):
        encode(cell, asking(MOVE))
    encode(OneCell(OneStep(TASK), TASK, requested_epsilon=1.0), asking(MOVE))
