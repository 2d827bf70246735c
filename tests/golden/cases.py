"""What is recorded: every agent on every problem it fits, and every option that changes the path.

A case is one agent with its parameters on one problem. ``AGENTS`` are run on all problems of their
family (one that refuses a problem is recorded as refused); ``OPTIONS`` on the named ones only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import tacit
from tacit.agents import agents
from tacit.problems.base import Problem

EPISODES = 60

PROBLEMS: dict[str, tuple[str, dict[str, Any]]] = {
    "pooled": ("random-mdp", {"states": 3, "actions": 2, "horizon": 4, "seed": 2}),
    "staged": (
        "river-swim",
        {"states": 3, "horizon": 4, "inhomogeneous": True, "rewards": "bernoulli"},
    ),
    "mixture": ("remap-walk", {"states": 10, "horizon": 3}),
    "hard-mixture": ("hard-mixture", {"dimension": 2, "horizon": 3}),
    "bandit": ("linear-bandit", {"dimension": 2, "arms": 3, "contexts": 4}),
    "linear": ("synthetic-linear", {"horizon": 3, "actions": 6}),
    "low-rank": ("low-rank", {"states": 5, "actions": 3, "dimension": 2, "horizon": 3}),
    "lq": ("lq-scalar", {}),
    "lq-two": ("random-lq", {"horizon": 6, "seed": 3}),
    "search": ("cart-pole", {}),
    "search-box": ("pendulum", {}),
}
FAMILIES = {
    "tabular": ("pooled", "staged"),
    "mixture": ("mixture", "hard-mixture", "bandit"),
    "linear": ("linear", "low-rank"),
    "control": ("lq", "lq-two"),
    "episodic": ("search", "search-box"),
}
"""Problems by what is known of them: nothing, mixture features, linear features, matrices; of the
last not even states."""

TABLES = (*FAMILIES["tabular"], *FAMILIES["mixture"], *FAMILIES["linear"])
CONTROL = FAMILIES["control"]

# Parameters that make an agent act on its data within few episodes; the others have defaults.
AGENTS: dict[str, dict[str, Any]] = {
    "psrl": {},
    "ucb-vi": {"bonus_scale": 0.02},
    "obi": {},
    "ldp-obi": {"epsilon": 50.0},
    "ldp-psrl": {"epsilon": 5.0},
    "shuffle-obi": {"epsilon": 1.0, "batch": 12},
    "pucb": {"epsilon": 500.0},
    "private-ucb-vi": {"epsilon": 50.0, "delta": 1e-5},
    "private-ucb-po": {"epsilon": 50.0, "delta": 1e-5},
    "dp-ucbvi": {"epsilon": 50.0, "delta": 1e-5},
    "lsvi-ucb": {"bonus_scale": 0.05},
    "lsvi-ucb++": {"bonus_scale": 0.05},
    "dp-lsvi-batch": {"epsilon": 5.0},
    "dp-lsvi-adaptive": {"epsilon": 500.0},
    "dp-lsvi-ucb++": {"epsilon": 500.0},
    "tacit-local": {"epsilon": 2.0, "batch": 7},
    "tacit-linear": {"epsilon": 5.0},
    "ofu-rl": {},
    "private-ofu-rl": {"epsilon": 5.0},
    "tacit-control": {"epsilon": 50.0},
    "certainty-equivalence": {},
    "thompson": {},
    "ucrl-vtr": {},
    "ldp-ucrl-vtr": {"epsilon": 20.0},
    "ldp-bandit": {"epsilon": 20.0},
    "linopt-vi": {},
    "linopt-po": {},
    "private-linopt-vi": {"epsilon": 50.0},
    "private-linopt-po": {"epsilon": 50.0},
    "tacit-joint": {"epsilon": 5.0},
    "policy-search": {},
    "tacit-search": {"epsilon": 5.0},
    "uniform": {},
    "optimal": {},
    "do-nothing": {},
}
CONTROLLERS = (
    *("ofu-rl", "private-ofu-rl", "tacit-control"),
    *("certainty-equivalence", "thompson", "do-nothing"),
)
SEARCHES = ("policy-search", "tacit-search")
COUNTERS = ("tree", "honaker", "toeplitz", "blt")


@dataclass(frozen=True)
class Case:
    """One agent with its parameters on one problem, with what is revealed to it."""

    problem: str
    agent: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    reveal: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Problem, agent, and everything that was chosen."""
        chosen = [f"{name}={value}" for name, value in self.parameters.items()]
        shown = [f"reveal={fact}" for fact in self.reveal]
        return " ".join([self.problem, self.agent, *chosen, *shown])

    @property
    def family(self) -> str:
        """Which of ``FAMILIES`` the problem is in."""
        return next(name for name, members in FAMILIES.items() if self.problem in members)

    @property
    def plain(self) -> bool:
        """The agent as ``AGENTS`` has it, on the first problem of a family."""
        first = self.problem in {members[0] for members in FAMILIES.values()}
        return first and self.parameters == AGENTS[self.agent] and not self.reveal

    def make_agent(self) -> Any:
        """The agent, in tight calibration unless the case says another: so it was recorded.

        As published the local ones' bonus was by default a tenth of the theorem's.
        """
        takes = agents.entry(self.agent).parameters
        usual: dict[str, Any] = {"calibration": "tight"} if "calibration" in takes else {}
        if self.agent in ("ldp-ucrl-vtr", "ldp-bandit"):
            usual["bonus_scale"] = 0.1
        return tacit.agent(self.agent, **usual | dict(self.parameters))


@cache
def problem(name: str) -> Problem:
    """A problem of ``PROBLEMS``."""
    kind, parameters = PROBLEMS[name]
    return tacit.problem(kind, **parameters)


Option = tuple[dict[str, Any], tuple[str, ...], tuple[str, ...]]
"""What is changed in the parameters of ``AGENTS``, on which problems, what is revealed."""


def _obi() -> Iterator[Option]:
    for width in ("paper", "corrected", "tight"):
        yield {"epsilon": 20.0, "width": width}, ("pooled",), ()
    for randomizer in ("laplace", "gaussian", "randomized-response", "bounded"):
        delta = {"delta": 0.1} if randomizer in ("gaussian", "bounded") else {}
        for calibration in ("tight", "paper"):
            chosen = {"epsilon": 20.0, "randomizer": randomizer, "calibration": calibration}
            yield {**chosen, **delta}, ("pooled", "mixture"), ()
    yield {"epsilon": 20.0, "randomizer": "randomized-response", "width": "tight"}, ("pooled",), ()


def _shuffle() -> Iterator[Option]:
    for steps in ("own", "assigned"):
        yield {"epsilon": 3.0, "delta": 0.01, "steps": steps, "batch": 12}, ("pooled", "staged"), ()
    yield {"epsilon": 3.0, "delta": 0.01, "batch": 15, "colluders": 2}, ("pooled",), ()
    yield {"batch": 0}, ("pooled",), ()
    yield {"calibration": "paper", "batch": 0}, ("pooled", "mixture"), ()
    yield {"calibration": "paper", "batch": 0, "reward_bits": 2}, ("pooled",), ()


def _tacit_local() -> Iterator[Option]:
    for exploration in ("posterior", "optimistic"):
        for epsilon in (0.5, 60.0):
            chosen = {"epsilon": epsilon, "exploration": exploration}
            yield chosen, ("pooled", "staged"), ()
    yield {"exploration": "optimistic", "batch": 1}, ("pooled",), ()
    yield {"batch": 1}, ("staged",), ()


def _private_lsvi(*more: dict[str, Any]) -> Iterator[Option]:
    for epsilon in (5.0, 1e4):
        yield {"epsilon": epsilon}, ("linear", "pooled"), ()
    yield {"epsilon": 1.0, "calibration": "paper"}, ("linear", "pooled"), ()
    yield {"epsilon": 1e4, "calibration": "paper", "bonus_scale": 0.05}, ("linear",), ()
    for chosen in more:
        yield chosen, ("linear",), ()


def _joint_regression() -> Iterator[Option]:
    for counter in COUNTERS[1:]:
        yield {"counter": counter}, ("mixture",), ()
    yield {"calibration": "paper"}, ("mixture", "hard-mixture"), ()
    yield {"statistic": "block", "every": 5, "centre": False}, ("pooled",), ()
    yield {"model": "local"}, ("mixture", "bandit"), ()
    yield {"model": "local", "every": 5}, ("mixture",), ()
    yield {"model": "local", "calibration": "paper"}, ("mixture",), ()
    yield {}, ("mixture", "staged"), ("reward",)
    yield {"epsilon": 1e4}, ("mixture",), ()


def _exact_regression() -> Iterator[Option]:
    yield {"statistic": "block", "every": 5}, ("pooled", "mixture"), ()
    yield {"centre": False}, ("mixture",), ()
    yield {"bonus_scale": 1.0, "beta": 0.1}, ("mixture",), ()


OPTIONS: dict[str, list[Option]] = {
    "psrl": [({}, ("pooled", "staged"), ("reward",)), ({"alpha0": 0.5}, ("pooled",), ())],
    "ucb-vi": [({}, ("pooled", "staged"), ("reward",)), ({"bonus_scale": 1.0}, ("pooled",), ())],
    "obi": [({"width": width}, ("pooled",), ()) for width in ("corrected", "tight")],
    "ldp-obi": list(_obi()),
    "ldp-psrl": [({"calibration": "paper"}, ("pooled",), ())],
    "shuffle-obi": list(_shuffle()),
    **{
        name: [({"calibration": "paper", "delta": 0.0, "epsilon": 5000.0}, ("pooled",), ())]
        for name in ("pucb", "private-ucb-vi", "private-ucb-po", "dp-ucbvi")
    },
    "tacit-local": list(_tacit_local()),
    "lsvi-ucb": [({"bonus_scale": None}, ("linear",), ())],
    "lsvi-ucb++": [
        ({"bonus_scale": None, "calibration": "paper"}, ("linear", "pooled"), ()),
        ({}, ("linear", "low-rank"), ("reward",)),
    ],
    "dp-lsvi-batch": list(_private_lsvi()),
    "dp-lsvi-adaptive": list(_private_lsvi()),
    "dp-lsvi-ucb++": [
        *_private_lsvi({"epsilon": 1.0, "calibration": "paper", "reuse_noise": True}),
        ({}, ("linear", "low-rank"), ("reward",)),
    ],
    "tacit-linear": [
        *(({"sums": sums}, ("linear", "low-rank", "pooled"), ()) for sums in ("answered",)),
        ({"sums": "additive"}, ("linear",), ()),
        *(({"sums": sums}, ("low-rank",), ("reward",)) for sums in ("additive", "answered")),
    ],
    "ofu-rl": [({"certify": True}, ("lq",), ()), ({}, ("lq-two",), ("noise",))],
    "private-ofu-rl": [
        *(({"counter": counter}, ("lq",), ()) for counter in ("tree", "honaker")),
        ({"calibration": "paper"}, CONTROL, ()),
        ({"clipping": "energy"}, CONTROL, ()),
        ({"certify": True, "epsilon": 1e4}, ("lq-two",), ("noise",)),
    ],
    "tacit-control": [({"epsilon": 1.0}, ("lq",), ()), ({"epsilon": 1e4}, CONTROL, ("noise",))],
    "certainty-equivalence": [({"excitation": 0.0}, ("lq",), ("noise",))],
    "thompson": [({"ridge": 1.0}, ("lq-two",), ("noise",))],
    "ucrl-vtr": list(_exact_regression()),
    "ldp-ucrl-vtr": [
        *(({"statistic": s}, ("pooled", "mixture"), ()) for s in ("block", "index")),
        ({"every": 5}, ("mixture",), ()),
        ({"statistic": "index", "every": 5}, ("pooled",), ()),
        ({"calibration": "paper"}, ("mixture", "staged"), ()),
        ({"calibration": "paper", "every": 5}, ("mixture",), ()),
        ({"centre": False}, ("mixture",), ()),
    ],
    "ldp-bandit": [
        ({"calibration": "paper"}, ("bandit",), ()),
        ({"every": 5}, ("bandit",), ()),
    ],
    "linopt-vi": [*_exact_regression(), ({}, ("mixture", "staged"), ("reward",))],
    "linopt-po": [*_exact_regression(), ({"rate": "paper"}, ("mixture",), ())],
    "private-linopt-vi": list(_joint_regression()),
    "private-linopt-po": [*_joint_regression(), ({"rate": "paper"}, ("mixture",), ())],
    "tacit-joint": [
        *(({"counter": counter}, ("mixture", "staged"), ()) for counter in COUNTERS[:2]),
        ({"counter": "blt"}, ("mixture", "staged"), ()),
        ({"first": 10, "growth": 1.5, "least": 4}, ("pooled", "hard-mixture"), ()),
        ({"first": 1, "growth": 1.001}, ("pooled",), ()),
        ({}, ("mixture", "pooled", "staged"), ("reward",)),
    ],
    "tacit-search": [
        ({"model": "local"}, ("search", "search-box"), ()),
        ({"model": "shuffle"}, ("search",), ()),
    ],
}


def cases() -> dict[str, Case]:
    """All cases by name."""
    found: dict[str, Case] = {}
    for agent, parameters in AGENTS.items():
        options = OPTIONS.get(agent, [])
        everywhere = CONTROL if agent in CONTROLLERS else TABLES
        if agent in SEARCHES:
            everywhere = FAMILIES["episodic"]
        for change, where, reveal in [({}, everywhere, ()), *options]:
            for name in where:
                case = Case(name, agent, {**parameters, **change}, reveal)
                found[case.name] = case
    return dict(sorted(found.items()))
