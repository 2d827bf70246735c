"""What a case study finds: values of policies by people and epsilon, and what they beat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Literal, NamedTuple

import numpy as np

from tacit.agents.base import Agent
from tacit.agents.catalogue import make_agent
from tacit.agents.offline import TacitOffline
from tacit.experiment import Experiment
from tacit.logs.mapping import LogMapping, make_mapping
from tacit.logs.offline import OfflineResult, offline
from tacit.logs.prior import LogPrior
from tacit.logs.simulated import simulate_log
from tacit.policies.base import Policy
from tacit.policies.parametric import ParametricPolicy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.problems.base import Problem
from tacit.problems.classic_control import table_episodes
from tacit.problems.tabular import TabularMDP
from tacit.simulation.attendance import Attendance
from tacit.streams import stream
from tacit.task.participation import Participation
from tacit.trajectory import Log
from tacit.util.intervals import Interval, mean_interval

WinCriterion = Literal["mostly", "surely"]
WIN_CRITERIA: dict[WinCriterion, str] = {
    "mostly": "at least 9 of 10 runs end with a policy that is worth more",
    "surely": "the mean of the runs is worth more, with 95% confidence",
}
"""What it means that an agent beats something."""


@dataclass(frozen=True)
class CaseSize:
    """How much of a case is studied, and who is told.

    Attributes:
        people: how many learn, or are learned from: each of these numbers.
        epsilons: privacy asked for.
        agents: who learns, where there is a choice.
        runs: independent ones.
        seed: root of all random streams.
        returns: how often each person takes part; the guarantee covers all of it.
        watch: told of every outcome when it is there.
    """

    people: Sequence[int]
    epsilons: Sequence[float]
    agents: Sequence[str] = ()
    runs: int = 10
    seed: int = 0
    returns: int = 1
    watch: Callable[[CaseOutcome], None] = lambda outcome: None


@dataclass(frozen=True)
class CaseOutcome:
    """Values of the policies of one agent, one per run.

    Attributes:
        agent: who learned, with its model where it has several.
        people: from how many.
        epsilon: under which privacy asked for.
        values: exact values of the policies that were left in the end.
        policy: the one that agrees most with those of all runs.
    """

    agent: str
    people: int
    epsilon: float
    values: tuple[float, ...]
    policy: Policy | None = field(default=None, compare=False)

    @property
    def mean(self) -> Interval:
        """Mean with its 95% interval."""
        return mean_interval(np.array(self.values))

    def beats(self, limit: float) -> int:
        """In how many runs the policy is worth more."""
        return sum(value > limit for value in self.values)

    def wins(self, limit: float, rule: WinCriterion) -> bool:
        """Whether the agent beats a limit."""
        if rule == "surely":
            return self.mean.low > limit
        return self.beats(limit) >= 0.9 * len(self.values)

    def to_json(self, limit: float) -> dict[str, Any]:
        """Plain values."""
        value = {"mean": self.mean.value, "ci95": [self.mean.low, self.mean.high]}
        who = {"agent": self.agent, "people": self.people, "epsilon": self.epsilon}
        runs = {"beats": self.beats(limit), "runs": len(self.values)}
        return {**who, "value": value, "values": list(self.values), **runs}


def online(
    problem: TabularMDP, agent: Agent, people: int, size: CaseSize, called: str = ""
) -> CaseOutcome:
    """Values of the policies that an agent leaves after so many people.

    Args:
        problem: the table; a search is told nothing about it but what is seen of states and what
            episodes return.
        agent: who learns.
        people: how many.
        size: runs, their seed, and how often each person takes part.
        called: what the outcome calls the agent, if not by its name.
    """
    world: Problem = table_episodes(problem) if "episodic" in agent.families else problem
    result = Experiment(
        problem=world,
        agent=agent,
        episodes=people * size.returns,
        runs=size.runs,
        seed=size.seed,
        participation=Participation(size.returns),
        attendance=Attendance() if size.returns == 1 else Attendance(people=people),
    ).run()
    values = tuple(problem.value(tabled(one.policy, problem)) for one in result.policies)
    chosen = tabled(result.policy.policy, problem)
    epsilon = agent.parameters().get("epsilon", np.inf)
    return CaseOutcome(called or agent.name, people, epsilon, values, chosen)


def tabled(policy: Policy, problem: TabularMDP) -> Policy:
    """A policy of a search as a table of actions; others as they are."""
    if not isinstance(policy, ParametricPolicy):
        return policy
    seen = range(problem.states) if problem.coordinates is None else problem.coordinates
    row = [int(policy.act(one, 0, None)) for one in seen]
    return TabularPolicy(np.tile(row, (problem.horizon, 1)))


class HeadStart(NamedTuple):
    """Regret per user of the first users, without and with a log to begin with."""

    people: int  # in the log
    users: int  # the first ones
    regret_per_user: Interval
    with_prior: Interval


def declared(
    name: str, states: int, action: dict[str, Any], task: dict[str, Any], **more: Any
) -> LogMapping:
    """How the logs of a made-up world are declared."""
    data, state = {"name": name, "people": 10_000_000}, [{"column": "state", "size": states}]
    columns = {column: column for column in ("person", "step", "reward", "propensity")}
    facts = {"data": data, "columns": columns, "state": state, "action": action, "task": task}
    return make_mapping({**facts, **more})


@dataclass(frozen=True, eq=False)
class LoggedWorld:
    """A world that is known, and what was done in it before anybody learned.

    Attributes:
        problem: the truth, which only scoring and made-up people see.
        behaviour: what was done.
        mapped: how its logs are declared.
        purpose: of the random stream of a log of so many people.
        paid: a state whose entry pays 1, in place of the rewards of the problem; -1 for none.
    """

    problem: TabularMDP
    behaviour: StochasticPolicy
    mapped: LogMapping
    purpose: str
    paid: int = -1

    def log(self, people: int, seed: int) -> Log:
        """Records of made-up people."""
        rng = stream(seed, 0, self.purpose.format(people))
        return simulate_log(self.problem, self.behaviour, people, rng, self.paid)

    def learn(self, log: Log, epsilon: float, seed: int) -> OfflineResult:
        """What tacit-offline makes of a log."""
        return offline(log, self.mapped, TacitOffline(epsilon), noise="simulated", seed=seed)

    def head_start(self, people: int, epsilon: float, runs: int, seed: int) -> HeadStart:
        """What the first tenth of up to 10,000 users of tacit-joint lose, once per log."""
        users, agent = min(people, 10_000), make_agent("tacit-joint", epsilon=epsilon)
        first = max(1, users // 10)
        lost = np.zeros((2, runs))
        for run in range(runs):
            made = self.learn(self.log(people, seed + run), epsilon, seed + run)
            for row, prior in zip(lost, (None, LogPrior.of(made)), strict=True):
                result = Experiment(
                    problem=self.problem,
                    agent=agent,
                    episodes=users,
                    seed=seed + run,
                    checkpoints=first,
                    prior=prior,
                ).run(workers=1)
                row[run] = result.regret[0, 0] / first
        return HeadStart(people, first, *map(mean_interval, lost))

    def collect(
        self, outcomes: Iterable[CaseOutcome], size: CaseSize
    ) -> tuple[list[CaseOutcome], list[HeadStart]]:
        """All outcomes, each told when it is there, and a head start for each number of people."""
        results = []
        for one in outcomes:
            size.watch(one)
            results.append(one)
        people, level = dict.fromkeys(one.people for one in results), results[0].epsilon
        return results, [self.head_start(n, level, size.runs, size.seed) for n in people]


def needed(
    outcomes: Sequence[CaseOutcome], limit: float, rule: WinCriterion = "mostly"
) -> dict[tuple[str, float], int | None]:
    """By agent and epsilon, from how many people on a limit is beaten.

    The least number that was tried from which on all larger ones that were tried do; None if the
    largest does not.
    """
    people: dict[tuple[str, float], int | None] = {}
    for key in dict.fromkeys((o.agent, o.epsilon) for o in outcomes):
        same = sorted((o for o in outcomes if (o.agent, o.epsilon) == key), key=lambda o: -o.people)
        won = [o.people for o in takewhile(lambda o: o.wins(limit, rule), same)]
        people[key] = won[-1] if won else None
    return people


Table = tuple[Sequence[str], Sequence[Sequence[Any]]]
"""Names of the columns, and rows of words and intervals."""

FILE = "study.json"
ONLY_ON_THE_PAGE = ("notes", "tables")
"""What ``tacit reproduce --json`` leaves out of the findings."""


def findings(
    name: str,
    references: Mapping[str, float],
    limit: str,
    rule: WinCriterion,
    outcomes: Sequence[CaseOutcome],
    starts: Sequence[HeadStart],
    notes: Sequence[str],
    more: Mapping[str, Table] | None = None,
) -> dict[str, Any]:
    """Everything that was found in one world, as plain values.

    Args:
        name: of the world.
        references: values without learning, and at best.
        limit: the reference that is to be beaten.
        rule: what beating it means.
        outcomes: values of what was learned.
        starts: what first users lose, without a log and with one, by people in the log.
        notes: what a reader has to know.
        more: further tables, by heading.
    """
    bar = references[limit]
    names = ["people in the log", "first users online", "regret per user", "with the log"]
    rows = [[f"{one.people:,}", f"{one.users:,}", *one[2:]] for one in starts]
    begins = f"tacit-joint that begins with a log, both at epsilon {outcomes[0].epsilon:g}"
    return {
        "study": name,
        "references": references,
        "beat": limit,
        "rule": WIN_CRITERIA[rule],
        "outcomes": [one.to_json(bar) for one in outcomes],
        "people_needed": [
            {"agent": agent, "epsilon": level, "people": n}
            for (agent, level), n in needed(outcomes, bar, rule).items()
        ],
        "head_start": [
            {name: _plain(value) for name, value in one._asdict().items()} for one in starts
        ],
        "notes": notes,
        "tables": {
            heading: [names, [[_plain(cell) for cell in row] for row in rows]]
            for heading, (names, rows) in {**(more or {}), begins: (names, rows)}.items()
        },
    }


def _plain(cell: Any) -> Any:
    return vars(cell) if isinstance(cell, Interval) else cell
