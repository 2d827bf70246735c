"""Agents by name."""

from __future__ import annotations

from typing import Any

from tacit.agents.base import Agent
from tacit.errors import InvalidInput
from tacit.util.registry import Registered, Registry

PRIVACY_PARAMETERS = ("epsilon", "delta", "calibration")

AGENTS = {
    "psrl": ("psrl:PSRL", "posterior sampling, not private"),
    "ucb-vi": ("obi:UcbVI", "optimistic value iteration with a Hoeffding bonus, not private"),
    "obi": ("obi:OBI", "optimistic backward induction on exact counts, not private"),
    "ldp-obi": ("obi:LdpOBI", "optimistic backward induction on locally randomized counts"),
    "ldp-psrl": ("psrl:LdpPSRL", "posterior sampling on locally randomized counts"),
    "shuffle-obi": ("shuffle_obi:ShuffleOBI", "optimistic planning on shuffled one-step reports"),
    "pucb": ("joint_tables:PUCB", "upper confidence bounds on jointly private counts"),
    "private-ucb-vi": (
        "joint_tables:PrivateUcbVI",
        "the same with shifted counts: value iteration",
    ),
    "private-ucb-po": (
        "joint_tables:PrivateUcbPO",
        "the same by mirror-descent policy optimisation",
    ),
    "dp-ucbvi": ("joint_tables:DpUCBVI", "the same with Bernstein bonuses on consistent counts"),
    "lsvi-ucb": ("lsvi:LsviUCB", "linear MDPs: least-squares value iteration, not private"),
    "lsvi-ucb++": (
        "lsvi:LsviUCBPlusPlus",
        "the same, variance-weighted, rare switching, not private",
    ),
    "dp-lsvi-batch": ("dp_lsvi:DpLsviBatch", "private LSVI, a new plan after every batch"),
    "dp-lsvi-adaptive": (
        "dp_lsvi:DpLsviAdaptive",
        "private LSVI, a new plan when a determinant doubled",
    ),
    "dp-lsvi-ucb++": (
        "dp_lsvi:DpLsviUCBPlusPlus",
        "private LSVI-UCB++: fresh noise, capped switches",
    ),
    "tacit-local": (
        "tacit_local:TacitLocal",
        "one report at full epsilon per user, noise-aware posterior",
    ),
    "tacit-linear": (
        "tacit_linear:TacitLinear",
        "linear MDPs: additive sums through a counter, optimistic prior",
    ),
    "ofu-rl": ("ofu_rl:OfuRL", "linear control by optimism, not private"),
    "private-ofu-rl": ("ofu_rl:PrivateOfuRL", "linear control by optimism on counted moments"),
    "tacit-control": (
        "tacit_control:TacitControl",
        "linear control from clipped responses, acts when it pays",
    ),
    "certainty-equivalence": (
        "reference:CertaintyEquivalence",
        "linear control: estimate and plan, not private",
    ),
    "thompson": ("reference:Thompson", "linear control: posterior sampling, not private"),
    "ucrl-vtr": ("vtr:UcrlVTR", "value-targeted regression on linear mixtures, not private"),
    "ldp-ucrl-vtr": ("vtr:LdpUcrlVTR", "value-targeted regression on locally randomized reports"),
    "ldp-bandit": ("vtr:LdpBandit", "the linear bandit on locally randomized reports"),
    "linopt-vi": ("linopt:LinOptVI", "linear mixtures with unknown rewards, not private"),
    "linopt-po": ("linopt:LinOptPO", "the same by mirror-descent policy optimisation, not private"),
    "private-linopt-vi": ("linopt:PrivateLinOptVI", "linopt-vi on noisy running sums"),
    "private-linopt-po": ("linopt:PrivateLinOptPO", "linopt-po on noisy running sums"),
    "tacit-joint": (
        "tacit_joint:TacitJoint",
        "running sums with few releases, noise-aware planning",
    ),
    "policy-search": ("tacit_search:PolicySearch", "the search below on exact sums, not private"),
    "tacit-search": (
        "tacit_search:TacitSearch",
        "any environment: policy search from one return per person",
    ),
    "uniform": ("reference:Uniform", "reference: uniformly random actions"),
    "optimal": ("reference:Optimal", "reference: the true optimum, revealed to it"),
    "do-nothing": ("reference:DoNothing", "reference for linear control: no input at all"),
}
"""By name, where its class is in this package, and what it is."""

FROM_A_LOG = {
    "tacit-offline": (
        "offline:TacitOffline",
        "first visits and pessimistic planning, outcomes in large tables",
    ),
    "dp-apvi": ("offline:DpApvi", "published pessimism on counts of every stage"),
    "dp-vapvi": ("offline:DpVapvi", "the same by variance-weighted regression"),
}
"""The same for those that learn from a log."""

agents: Registry[Agent] = Registry("agent", "tacit.agents", AGENTS | FROM_A_LOG)


def from_people() -> list[Registered[Agent]]:
    """Those that learn from people who take part."""
    return [agents.entry(name) for name in AGENTS]


def make_agent(name: str, **parameters: Any) -> Agent:
    """The agent of that name; privacy parameters only where there is privacy.

    >>> make_agent("tacit-local", epsilon=1.0).epsilon
    1.0
    """
    entry = agents.entry(name)
    for parameter in PRIVACY_PARAMETERS:
        if parameter in parameters and parameter not in entry.parameters:
            taken = ", ".join(entry.parameters)
            raise InvalidInput(
                f"{name} is private, but takes no {parameter}: leave it out; it takes {taken}"
                if "epsilon" in entry.parameters
                else f"{name} adds no noise and takes no {parameter}: leave it out, or choose a "
                "private agent (`tacit list agents`)"
            )
    if "epsilon" in entry.parameters and "epsilon" not in parameters:
        raise InvalidInput(
            f"{name} is private and needs an epsilon (there is no default): give one, as in "
            f"tacit.agent({name!r}, epsilon=1.0) or --epsilon 1"
        )
    return entry.make(parameters)
