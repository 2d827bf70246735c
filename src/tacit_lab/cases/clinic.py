"""The clinic: sepsis in intensive care, learned from logs of the clinicians, or without any.

The table is ICU-Sepsis (package icu-sepsis, MIT), built by its authors from hospital records; it is
read from the installed package and is no part of tacit. A patient is in one of 716 states, there
are up to 25 treatments, of which those that clinicians used are allowed, and survival pays 1. The
number of states is public, so is what is allowed; everything else is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from tacit.agents.offline import TacitOffline
from tacit.errors import MissingExtra
from tacit.logs.mapping import LogMapping, make_mapping
from tacit.logs.offline import offline
from tacit.logs.simulated import simulate_log
from tacit.policies.base import Policy
from tacit.policies.tabular import StochasticPolicy
from tacit.problems.gymnasium.tables import gymnasium_problem
from tacit.problems.tabular import TabularMDP
from tacit.streams import stream
from tacit.trajectory import Log
from tacit_lab.cases.outcome import CaseOutcome, HeadStart, collect, findings, head_start, online

HORIZON = 20
"""Steps of four hours; a mean stay has about nine, and most of the value is within it."""

PEOPLE, EPSILONS = (10_000, 100_000, 1_000_000), (0.25, 1.0, 4.0)


NOTES = (
    "tacit-offline learns from logs of the clinicians, one release about all patients; epsilon "
    "1000 has next to no noise and shows what the logs alone cost. tacit-joint has no log: it "
    "treats the patients one after the other, some of them to learn.",
    "The table was built by the authors of ICU-Sepsis from hospital records. It is a model of "
    "patients, not patients: no number here is a medical claim.",
    "Survival is counted within 20 steps of four hours.",
)


class Clinic(NamedTuple):
    """The truth of the clinic, which only scoring and made-up patients see."""

    problem: TabularMDP
    clinicians: StochasticPolicy
    survived: int  # the state that pays
    mapped: LogMapping


@cache
def clinic(horizon: int = HORIZON) -> Clinic:
    """The world, with the policy of the clinicians."""
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
    return Clinic(problem, policy, survived, _mapping(problem))


def _data_file() -> str:
    """Where the installed package keeps its table; importing it would import the old gym."""
    try:
        files = metadata.files("icu-sepsis") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "dynamics.npz":
            return str(file.locate())
    raise MissingExtra("the clinic needs the package icu-sepsis: pip install 'tacit[sepsis]'")


def _mapping(problem: TabularMDP) -> LogMapping:
    ends = np.flatnonzero(np.diff(problem.pairs.first) == 0).tolist()
    allowed = [np.flatnonzero(row >= 0).tolist() for row in problem.pairs.number]
    names = ("person", "step", "reward", "propensity")
    return make_mapping(
        {
            "data": {"name": "clinic", "people": 10_000_000},
            "columns": {name: name for name in names},
            "state": [{"column": "state", "size": problem.states}],
            "action": {"column": "action", "size": problem.actions},
            "task": {"horizon": problem.horizon, "terminal": ends, "allowed": allowed},
            "reward": {"most": 1.0},
        }
    )


def patients(world: Clinic, behaviour: Policy, people: int, seed: int) -> Log:
    """Records of made-up patients, treated by a behaviour."""
    rng = stream(seed, 0, f"patients {people}")
    return simulate_log(world.problem, behaviour, people, rng, world.survived)


def clinic_study(
    people: Sequence[int] = PEOPLE,
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 10,
    seed: int = 0,
) -> Iterator[CaseOutcome]:
    """What policies are worth by number of patients and epsilon, from logs and learned online.

    The last row of every log has next to no noise: what logs alone cost.
    """
    world = clinic()
    for n in people:
        worth: dict[float, list[float]] = {epsilon: [] for epsilon in (*epsilons, NOISELESS)}
        for run in range(runs):
            log = patients(world, world.clinicians, n, seed + run)
            for epsilon, found in worth.items():
                agent, root = TacitOffline(epsilon), 1000 * seed + run
                made = offline(log, world.mapped, agent, noise="simulated", seed=root)
                found.append(world.problem.value(made.policy.policy))
        for epsilon, found in worth.items():
            yield CaseOutcome("tacit-offline", n, epsilon, tuple(found))
        for epsilon in epsilons:
            yield online(world.problem, "tacit-joint", n, epsilon, runs, seed)


def clinic_start(people: int, epsilon: float, runs: int, seed: int) -> HeadStart:
    """What the first patients lose who are treated online, after logs of the clinicians."""
    world = clinic()
    logs = []
    for run in range(runs):
        log = patients(world, world.clinicians, people, seed + run)
        agent = TacitOffline(epsilon)
        made = offline(log, world.mapped, agent, noise="simulated", seed=seed + run)
        logs.append(made)
    return head_start(world.problem, logs, people, epsilon, seed)


NOISELESS = 1000.0
"""An epsilon at which noise is next to nothing."""


def references(world: Clinic) -> dict[str, float]:
    """What the same patients get without learning, and at best."""
    return {
        "uniform": world.problem.baseline()[1],
        "clinicians": world.problem.value(world.clinicians),
        "best": world.problem.optimal_value(),
    }


def study(
    people: Sequence[int] = PEOPLE,
    epsilons: Sequence[float] = EPSILONS,
    runs: int = 10,
    seed: int = 0,
    watch: Callable[[CaseOutcome], None] = lambda outcome: None,
) -> dict[str, Any]:
    """What a private policy is worth in the clinic, by patients and epsilon."""
    known = references(clinic())
    outcomes, starts = collect(
        clinic_study(people, epsilons, runs, seed),
        lambda n, level: clinic_start(n, level, runs, seed),
        watch,
    )
    return findings("clinic", known, "clinicians", "surely", outcomes, starts, NOTES)
