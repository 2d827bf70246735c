"""The clinic: sepsis in intensive care, learned from logs of the clinicians, or without any.

The table is ICU-Sepsis (package icu-sepsis, MIT), built by its authors from hospital records; it is
read from the installed package and is no part of tacit. A patient is in one of 716 states, there
are up to 25 treatments, of which those that clinicians used are allowed, and survival pays 1. The
number of states is public, so is what is allowed; everything else is learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from tacit.agents.catalogue import make_agent
from tacit.errors import MissingExtra
from tacit.logs.mapping import LogMapping
from tacit.policies.tabular import StochasticPolicy
from tacit.problems.gymnasium.tables import gymnasium_problem
from tacit.problems.tabular import TabularMDP
from tacit_lab.cases.outcome import CaseOutcome, CaseSize, LoggedWorld, declared, findings, online

HORIZON = 20
"""Steps of four hours; a mean stay has about nine, and most of the value is within it."""

SIZE = CaseSize(people=(10_000, 100_000, 1_000_000), epsilons=(0.25, 1.0, 4.0))


NOTES = (
    "tacit-offline learns from logs of the clinicians, one release about all patients; epsilon "
    "1000 has next to no noise and shows what the logs alone cost. tacit-joint has no log: it "
    "treats the patients one after the other, some of them to learn.",
    "The table was built by the authors of ICU-Sepsis from hospital records. It is a model of "
    "patients, not patients: no number here is a medical claim.",
    "Survival is counted within 20 steps of four hours.",
)


@cache
def clinic(horizon: int = HORIZON) -> LoggedWorld:
    """The world, as clinicians treated its patients."""
    problem = gymnasium_problem("Sepsis/ICU-Sepsis-v2", horizon, returns=[0, 1])
    with np.load(_data_file()) as data:
        expert, paid = data["expert_policy"], data["r_mat"]
    rows = np.zeros((problem.states, problem.actions))
    rows[: len(expert)] = expert
    rows = np.where(problem.pairs.number >= 0, rows, 0.0)
    nobody = rows.sum(axis=1) <= 0.0  # states that end, and some that no clinician was seen in
    rows[nobody] = problem.pairs.number[nobody] >= 0
    rows[np.diff(problem.pairs.first) == 0, 0] = 1.0
    rows /= rows.sum(axis=1, keepdims=True)
    policy = StochasticPolicy(np.broadcast_to(rows, (horizon, *rows.shape)))
    survived = int(np.unique(np.nonzero(paid > 0)[2])[0])
    return LoggedWorld(problem, policy, _mapping(problem), "patients {}", survived)


def _data_file() -> str:
    """Where the installed package keeps its table; importing it would import the old gym."""
    with suppress(metadata.PackageNotFoundError):
        for file in metadata.files("icu-sepsis") or []:
            if file.name == "dynamics.npz":
                return str(file.locate())
    raise MissingExtra("the clinic needs the package icu-sepsis: pip install 'tacit[sepsis]'")


def _mapping(problem: TabularMDP) -> LogMapping:
    ends = np.flatnonzero(np.diff(problem.pairs.first) == 0).tolist()
    allowed = [np.flatnonzero(row >= 0).tolist() for row in problem.pairs.number]
    action = {"column": "action", "size": problem.actions}
    task = {"horizon": problem.horizon, "terminal": ends, "allowed": allowed}
    return declared("clinic", problem.states, action, task, reward={"most": 1.0})


def _outcomes(world: LoggedWorld, size: CaseSize) -> Iterator[CaseOutcome]:
    """Values of policies by number of patients and epsilon, from logs and learned online.

    The last row of every log has next to no noise: what logs alone cost.
    """
    for n in size.people:
        values: dict[float, list[float]] = {epsilon: [] for epsilon in (*size.epsilons, NOISELESS)}
        for run in range(size.runs):
            log = world.log(n, size.seed + run)
            for epsilon, row in values.items():
                policy = world.learn(log, epsilon, 1000 * size.seed + run).policy.policy
                row.append(world.problem.value(policy))
        for epsilon, row in values.items():
            yield CaseOutcome("tacit-offline", n, epsilon, tuple(row))
        for epsilon in size.epsilons:
            yield online(world.problem, make_agent("tacit-joint", epsilon=epsilon), n, size)


NOISELESS = 1000.0
"""An epsilon at which noise is next to nothing."""


def study(size: CaseSize = SIZE) -> dict[str, Any]:
    """What a private policy is worth in the clinic, by patients and epsilon."""
    world = clinic()
    outcomes, starts = world.collect(_outcomes(world, size), size)
    known = {
        "uniform": world.problem.baseline()[1],
        "clinicians": world.problem.value(world.behaviour),
        "best": world.problem.optimal_value(),
    }
    return findings("clinic", known, "clinicians", "surely", outcomes, starts, NOTES)
