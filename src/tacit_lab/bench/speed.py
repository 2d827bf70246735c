"""Speed side by side: the same algorithm by tacit, by hand, and by rlberry-scool, in turns.

Processor time, so that other work on the machine disturbs less; all contenders take turns, round by
round, so that what disturbs one disturbs all. Ratios are the result; times are for orientation.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.agents.catalogue import make_agent
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.problems.tabular import TabularMDP
from tacit.problems.tabular_benchmarks import random_mdp, river_swim
from tacit.simulation.checkpoints import checkpoints
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.runs.stepwise import StepwiseRun
from tacit_lab.bench import by_hand, peer_rlberry
from tacit_lab.bench.peer import ask

PEER = "rlberry-scool"
HAND = "plain NumPy"
BY_HAND: dict[str, tuple[str, Callable[[TabularMDP, int, int], float]]] = {
    "ucb-vi": (HAND, by_hand.ucb_vi),
    "lsvi-ucb": (HAND, by_hand.lsvi),
    "ldp-obi": ("by hand, compiled", by_hand.ldp_obi),
}
"""What the contender is called that is written by hand, and its time."""


@dataclass(frozen=True)
class SpeedContest:
    """One algorithm on one problem.

    Attributes:
        algorithm: by our name.
        problem: on what.
        words: the problem in words.
        ours: episodes that tacit is timed on.
        theirs: episodes that the slow contenders are timed on.
        first: whether all are timed on their first episodes, where the time grows with them.
        unequal: what is not the same between the contenders.
    """

    algorithm: str
    problem: TabularMDP
    words: str
    ours: int
    theirs: int
    first: bool
    unequal: tuple[str, ...]


_UCB_VI = (
    "plain NumPy: the same bonus and the same exact score of every policy, drawn with NumPy's own "
    "generator",
    "rlberry-scool UCBVI: a simplified Bernstein bonus of its own, ties go to the first action, "
    "policies are not scored; it steps a Gymnasium environment, as it must",
)
_LSVI = (
    "plain NumPy: regressions on the whole history, stage by stage, with one-hot features",
    "rlberry-scool LSVI-UCB: pools the stages in one Gram matrix, has a bonus of its own, goes "
    "through the whole history in Python loops and gets slower with every episode; policies are "
    "not scored",
    "tacit keeps sums of transitions, so that an episode costs the same early and late",
)
_LDP = (
    "by hand: published noise in floating point, no grid, no exact sums, no release object: a "
    "yardstick for speed, not for privacy",
)


def contests(quick: bool) -> list[SpeedContest]:
    """What is timed."""
    swim, small = river_swim(), random_mdp(seed=1)
    swim_text, small_text = "river-swim S=6 A=2 H=20", "random-mdp S=2 A=2 H=2"
    theirs, many, few = (100, 5_000, 12) if quick else (500, 50_000, 40)
    return [
        SpeedContest("ucb-vi", swim, swim_text, many, theirs, False, _UCB_VI),
        SpeedContest("ucb-vi", small, small_text, 4 * many, 4 * theirs, False, _UCB_VI),
        SpeedContest("lsvi-ucb", swim, swim_text, few, few, True, _LSVI),
        SpeedContest("ldp-obi", swim, swim_text, many, many, False, _LDP),
        SpeedContest("ldp-obi", small, small_text, 4 * many, 4 * many, False, _LDP),
    ]


def report(
    contest: SpeedContest, quick: bool, peer_python: Path | None, watch: Callable[[str], None]
) -> dict[str, Any]:
    """A contest in plain values, as ``tacit reproduce bench --json`` prints it."""
    rounds = 1 if quick else 5
    timed, missing = measure(contest, rounds, peer_python, watch)
    contenders = []
    for who, times in timed.items():
        ratios = [a / b for a, b in zip(times, timed["tacit"], strict=True)]
        own = {"who": who, "microseconds_per_episode": statistics.median(times)}
        slower = {"times_slower": statistics.median(ratios), "range": [min(ratios), max(ratios)]}
        contenders.append({**own, **slower})
    return {
        "algorithm": contest.algorithm,
        "problem": contest.words,
        "episodes": {"tacit": contest.ours, "others": contest.theirs},
        "rounds": rounds,
        "contenders": contenders,
        "not_equal": list(contest.unequal),
        "missing": missing,
    }


def measure(
    contest: SpeedContest, rounds: int, peer_python: Path | None, watch: Callable[[str], None]
) -> tuple[dict[str, list[float]], str | None]:
    """All contenders in turns, tacit first; and why the peer is missing, if it is.

    Of each the microseconds of processor time per episode, round by round.
    """
    who, loop = BY_HAND[contest.algorithm]
    contenders: dict[str, Callable[[int], float]] = {
        "tacit": lambda seed: _tacit(contest, seed),
        who: lambda seed: loop(contest.problem, contest.theirs, seed),
    }
    missing = None
    if peer_python is not None and contest.algorithm != "ldp-obi":
        try:
            _peer(contest, peer_python, 0, episodes=2)
            contenders[PEER] = lambda seed: _peer(contest, peer_python, seed)
        except InvalidInput as error:
            missing = str(error)
    taken: dict[str, list[float]] = {who: [] for who in contenders}
    _tacit(contest, 0)  # compiles, or loads
    for number in range(rounds):
        for who, run in contenders.items():
            watch(f"{contest.algorithm} on {contest.words}, round {number + 1}: {who}")
            taken[who].append(run(number))
    return taken, missing


_PARAMETERS: dict[str, dict[str, Any]] = {
    "ldp-obi": {"epsilon": 2.0, "calibration": "paper"},
    "lsvi-ucb": {"bonus_scale": 0.1},
}


def _tacit(contest: SpeedContest, seed: int) -> float:
    """Our own time; where all episodes cost the same, a tenth of them first, untimed."""
    agent = make_agent(contest.algorithm, **_PARAMETERS.get(contest.algorithm, {}))
    before = 0 if contest.first else contest.ours // 10
    bound = bind(contest.problem, agent, before + contest.ours)
    grid = checkpoints(before + contest.ours)
    run = compiled_run(contest.problem, bound, seed, 0, grid) or StepwiseRun(
        contest.problem, bound, seed, 0, grid, threading.Event()
    )
    if before:
        run.advance(before)
    began = time.process_time()
    run.advance(contest.ours)
    return 1e6 * (time.process_time() - began) / contest.ours


def _peer(contest: SpeedContest, python: Path, seed: int, episodes: int | None = None) -> float:
    problem = contest.problem
    tables = {"P": problem.P[0], "R": problem.R[0], "initial": problem.initial}
    order = {name: table.tolist() for name, table in tables.items()}
    order |= {"agent": contest.algorithm, "horizon": problem.horizon, "seed": seed}
    order |= {"episodes": episodes or contest.theirs}
    return float(ask(python, peer_rlberry.__file__, order, PEER)["microseconds"])
