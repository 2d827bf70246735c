"""Every statistic against lives of special numbers: subnormal, infinite, none, out of range."""

import itertools
from functools import partial
from typing import Any

import numpy as np

import tacit
from contracts import hostile
from contracts.statistic import Case, LogStatisticContract, StatisticContract, case_of, used_by
from tacit.logs.mapping import make_mapping
from tacit.policies.tabular import uniform_policy
from tacit.publication import Publication
from tacit.statistics.counts import JointCounts, Nothing, PolicyTransitions, VisitCounts
from tacit.statistics.first_visits import FirstReturns, FirstVisits
from tacit.statistics.linear import CuratedTransitions, LinearSums
from tacit.statistics.log_sums import LoggedOutcomes, LoggedStages, LoggedVisits, WeightedReturns
from tacit.statistics.lq import ControlMoments, InstrumentedResponses
from tacit.statistics.multi_target import MultiTargets
from tacit.statistics.norm_budget import NormBudget
from tacit.statistics.one_step import EachStep, OneStep
from tacit.statistics.search import RoundedReturn, SharedReturn, WindowedReturn
from tacit.statistics.targets import ValueTargets
from tacit.task.participation import Participation
from tacit.task.task import Task

TABLE = ("random-mdp", {"states": 3, "actions": 2, "horizon": 4, "seed": 2})
STAGES = ("river-swim", {"states": 3, "horizon": 4, "inhomogeneous": True})
MIXTURE = ("remap-walk", {"states": 10, "horizon": 3})
SYSTEM = ("random-lq", {"horizon": 6, "seed": 3})
RANK = ("low-rank", {"states": 3, "actions": 2, "dimension": 2, "horizon": 3, "seed": 1})
LIVES = Participation("any", "lifetime")
ENDS = {"terminal": np.array([False, False, True]), "end_reward": np.asarray(0.5)}


def on(world: tuple[str, dict[str, Any]], agent: str, **parameters: Any) -> Case:
    epsilon = {} if "epsilon" in parameters else {"epsilon": 5.0}
    return used_by(world[0], agent, world[1], **epsilon, **parameters)


def ended(make: Any, rule: Participation | None = None, **context: np.ndarray) -> Case:
    """On a table of three states, the last of which ends an episode."""
    known = {**ENDS, "returns": np.array([0.0, 2.0])}
    sizes = {"states": 3, "actions": 2}
    task = Task("tabular", 4, sizes, True, 100, known=known, rule=rule)
    return case_of(make(task), Publication(0, uniform_policy(4, 3, 2), context), task)


class TestVisitCounts(StatisticContract):
    subject: Any = VisitCounts

    def cases(self) -> dict[str, Case]:
        return {
            "pooled": ended(VisitCounts),
            "stages": ended(lambda task: VisitCounts(task, squares=True, pooled=False)),
        }


class TestJointCounts(StatisticContract):
    subject: Any = JointCounts

    def cases(self) -> dict[str, Case]:
        return {
            "stages": on(STAGES, "tacit-joint"),
            "pooled": ended(lambda task: JointCounts(task, 0.3)),
        }


class TestPolicyTransitions(StatisticContract):
    subject: Any = PolicyTransitions
    weighted = True

    def cases(self) -> dict[str, Case]:
        return {"index": on(MIXTURE, "ldp-ucrl-vtr", statistic="index", calibration="tight")}


class TestNothing(StatisticContract):
    subject: Any = Nothing

    def cases(self) -> dict[str, Case]:
        return {"": used_by(TABLE[0], "uniform", TABLE[1])}


class TestFirstVisitsOfPairs(StatisticContract):
    subject: Any = FirstVisits

    def cases(self) -> dict[str, Case]:
        wanted = {"wanted": np.full(4, 2)}
        return {
            "pairs": on(TABLE, "tacit-joint"),
            "ends": ended(lambda task: FirstVisits(task, 2, 1, 2), **wanted),
            "lives": ended(lambda task: FirstVisits(task, 3, 2, 2), LIVES, **wanted),
        }


class TestReturnsFromFirstVisits(StatisticContract):
    subject: Any = FirstReturns

    def cases(self) -> dict[str, Case]:
        return {
            "ends": ended(lambda task: FirstReturns(task, 9)),
            "lives": ended(lambda task: FirstReturns(task, 2), LIVES),
        }


class TestLinearSums(StatisticContract):
    subject: Any = LinearSums

    def cases(self) -> dict[str, Case]:
        return {
            "table": on(TABLE, "tacit-linear", sums="additive"),
            "rank": on(RANK, "tacit-linear", sums="additive"),
            "stages": on(STAGES, "tacit-linear", sums="additive"),
        }


class TestCuratedTransitions(StatisticContract):
    subject: Any = CuratedTransitions

    def cases(self) -> dict[str, Case]:
        table = {"weights": np.full((4, 3, 2), 0.5)}
        return {
            "rank": on(RANK, "tacit-linear", sums="answered"),
            "weights": ended(lambda task: CuratedTransitions(task, 0.7), **table),
        }


class TestControlMoments(StatisticContract):
    subject: Any = ControlMoments

    def cases(self) -> dict[str, Case]:
        case = used_by(SYSTEM[0], "certainty-equivalence", SYSTEM[1])
        task = tacit.problem(SYSTEM[0], **SYSTEM[1]).task(100)
        paper = ControlMoments(task, weight=2.0, isometric=False, energy=2.5)
        return {"moments": case, "paper": case_of(paper, case.entry, task)}


class TestInstrumentedResponses(StatisticContract):
    subject: Any = InstrumentedResponses

    def cases(self) -> dict[str, Case]:
        return {
            "unknown noise": on(SYSTEM, "tacit-control"),
            "known": on(SYSTEM, "tacit-control", reveal=("start", "noise")),
        }


class TestMultiTargets(StatisticContract):
    subject: Any = MultiTargets

    def cases(self) -> dict[str, Case]:
        return {"walk": on(MIXTURE, "tacit-joint")}


class TestValueTargets(StatisticContract):
    subject: Any = ValueTargets
    weighted = True

    def cases(self) -> dict[str, Case]:
        return {
            "published": on(MIXTURE, "ldp-ucrl-vtr"),
            "published sums": on(MIXTURE, "private-linopt-vi"),
            "central": on(MIXTURE, "private-linopt-vi", calibration="tight"),
            "local": on(MIXTURE, "ldp-ucrl-vtr", calibration="tight"),
            "bandit": on(
                (MIXTURE[0], {"states": 10, "horizon": 1}), "ldp-bandit", calibration="tight"
            ),
        }


class TestNormBudget(StatisticContract):
    subject: Any = NormBudget

    def cases(self) -> dict[str, Case]:
        return {
            "walk": on(MIXTURE, "tacit-joint", rule=LIVES),
            "system": on(SYSTEM, "tacit-control", rule=LIVES),
            "rank": on(RANK, "tacit-linear", rule=Participation("any", "lifetime", often=3)),
        }


class TestOneStep(StatisticContract):
    subject: Any = OneStep

    def cases(self) -> dict[str, Case]:
        return {
            "agent": on(TABLE, "tacit-local"),
            "ends": ended(OneStep, questions=np.arange(1, 13) / 12),
        }


class TestEachStep(StatisticContract):
    subject: Any = EachStep

    def cases(self) -> dict[str, Case]:
        return {"ends": ended(EachStep)}


class TestWindowedReturn(StatisticContract):
    subject: Any = WindowedReturn

    def cases(self) -> dict[str, Case]:
        return {"poles": used_by("cart-pole", "tacit-search", epsilon=5.0)}


def searched(make: Any) -> dict[str, Case]:
    """What else is made of a return, under the same publication."""
    entry = TestWindowedReturn().cases()["poles"].entry
    task = tacit.problem("cart-pole").task(100)
    return {"poles": case_of(make(task), entry, task)}


class TestRoundedReturn(StatisticContract):
    subject: Any = RoundedReturn

    def cases(self) -> dict[str, Case]:
        return searched(lambda task: RoundedReturn(task, 31))


class TestSharedReturn(StatisticContract):
    subject: Any = SharedReturn

    def cases(self) -> dict[str, Case]:
        return searched(SharedReturn)


# ---- logs ----


TYPES = {"as read": (np.int8, np.float32), "wide": (np.int64, np.float64)}
TYPES |= {"odd": (np.uint64, np.float16)}


def logged(make: Any) -> dict[str, Case]:
    """A statistic of logs where episodes end, and where they do not, in columns of any type."""
    found = {}
    for ends, (name, types) in itertools.product((False, True), TYPES.items()):
        columns = {"person": "p", "episode": "e", "step": "t", "reward": "r", "propensity": "c"}
        told = {
            "data": {"name": "small", "people": 50},
            "columns": {**columns, "ends": "d"} if ends else columns,
            "state": [{"column": "s", "size": 4}],
            "action": {"column": "a", "size": 2},
            "task": {"horizon": 3},
            "reward": {"range": [-0.5, 1.0], "most": 1.5} if ends else {},
        }
        mapped, nobody = make_mapping(told), Publication(0, uniform_policy(3, 4, 2))
        sent = partial(
            hostile.rows_of_one,
            sizes=(3, mapped.task.sizes["states"], 2),
            whole=types[0],
            real=types[1],
        )
        found[f"{name}, ends {ends}"] = Case(make(mapped), nobody, sent)
    return found


class TestLoggedVisits(LogStatisticContract):
    subject: Any = LoggedVisits

    def cases(self) -> dict[str, Case]:
        return logged(lambda mapped: LoggedVisits(mapped.task, 3, mapped.max_return))


class TestLoggedStages(LogStatisticContract):
    subject: Any = LoggedStages

    def cases(self) -> dict[str, Case]:
        return logged(lambda mapped: LoggedStages(mapped.task, mapped.max_return))


class TestLoggedOutcomes(LogStatisticContract):
    subject: Any = LoggedOutcomes

    def cases(self) -> dict[str, Case]:
        return logged(lambda mapped: LoggedOutcomes(mapped.task, 2, mapped.max_return))


class TestWeightedReturns(LogStatisticContract):
    subject: Any = WeightedReturns
    compared = 1.0

    def cases(self) -> dict[str, Case]:
        """Under a policy with zeros and numbers beside them, and under what is no policy."""

        def make(mapped: Any, odd: bool = False) -> WeightedReturns:
            rng = np.random.default_rng(0)
            policy = rng.random((3, mapped.task.sizes["states"], 2))
            policy[1, :, 0], policy[:, 0, :] = 0.0, [1.0, 5e-324]
            if odd:
                policy = rng.choice(hostile.special(np.float64), policy.shape)
            return WeightedReturns(mapped.task, policy, 3.0, mapped.max_return)

        none = logged(partial(make, odd=True))
        return {**logged(make), **{f"{name}, no policy": case for name, case in none.items()}}
