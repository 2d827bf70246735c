"""Agents by name."""

from __future__ import annotations

from typing import Any

from tacit.agents.base import Agent
from tacit.agents.control_references import CertaintyEquivalence, DoNothing, Thompson
from tacit.agents.dp_lsvi import DpLsviAdaptive, DpLsviBatch, DpLsviUCBPlusPlus
from tacit.agents.ldp_bandit import LdpBandit
from tacit.agents.ldp_obi import LdpOBI
from tacit.agents.ldp_psrl import LdpPSRL
from tacit.agents.linopt import LinOptPO, LinOptVI
from tacit.agents.lsvi import LsviUCB, LsviUCBPlusPlus
from tacit.agents.obi import OBI
from tacit.agents.ofu_rl import OfuRL, PrivateOfuRL
from tacit.agents.private_linopt import PrivateLinOptPO, PrivateLinOptVI
from tacit.agents.psrl import PSRL
from tacit.agents.references import Optimal, Uniform
from tacit.agents.shuffle_obi import ShuffleOBI
from tacit.agents.tacit_control import TacitControl
from tacit.agents.tacit_joint import TacitJoint
from tacit.agents.tacit_linear import TacitLinear
from tacit.agents.tacit_local import TacitLocal
from tacit.agents.ucb_vi import UcbVI
from tacit.agents.vtr import LdpUcrlVTR, UcrlVTR
from tacit.errors import InvalidInput
from tacit.registry import Registry

PRIVACY_PARAMETERS = ("epsilon", "delta", "calibration")

agents: Registry[Agent] = Registry("agent")
agents.add("psrl", PSRL, "posterior sampling, not private")
agents.add("ucb-vi", UcbVI, "optimistic value iteration with a Hoeffding bonus, not private")
agents.add("obi", OBI, "optimistic backward induction on exact counts, not private")
agents.add("ldp-obi", LdpOBI, "optimistic backward induction on locally randomized counts")
agents.add("ldp-psrl", LdpPSRL, "posterior sampling on locally randomized counts")
agents.add("shuffle-obi", ShuffleOBI, "optimistic planning on shuffled one-step reports")
agents.add("lsvi-ucb", LsviUCB, "linear MDPs: least-squares value iteration, not private")
agents.add(
    "lsvi-ucb++", LsviUCBPlusPlus, "the same, variance-weighted, rare switching, not private"
)
agents.add("dp-lsvi-batch", DpLsviBatch, "private LSVI, a new plan after every batch")
agents.add(
    "dp-lsvi-adaptive", DpLsviAdaptive, "private LSVI, a new plan when a determinant doubled"
)
agents.add("dp-lsvi-ucb++", DpLsviUCBPlusPlus, "private LSVI-UCB++: fresh noise, capped switches")
agents.add("tacit-local", TacitLocal, "one report at full epsilon per user, noise-aware posterior")
agents.add(
    "tacit-linear", TacitLinear, "linear MDPs: additive sums through a counter, optimistic prior"
)
agents.add("ofu-rl", OfuRL, "linear control by optimism, not private")
agents.add("private-ofu-rl", PrivateOfuRL, "linear control by optimism on counted moments")
agents.add(
    "tacit-control", TacitControl, "linear control from clipped responses, acts when it pays"
)
agents.add(
    "certainty-equivalence", CertaintyEquivalence, "linear control: estimate and plan, not private"
)
agents.add("thompson", Thompson, "linear control: posterior sampling, not private")
agents.add("ucrl-vtr", UcrlVTR, "value-targeted regression on linear mixtures, not private")
agents.add("ldp-ucrl-vtr", LdpUcrlVTR, "value-targeted regression on locally randomized reports")
agents.add("ldp-bandit", LdpBandit, "the linear bandit on locally randomized reports")
agents.add("linopt-vi", LinOptVI, "linear mixtures with unknown rewards, not private")
agents.add("linopt-po", LinOptPO, "the same by mirror-descent policy optimisation, not private")
agents.add("private-linopt-vi", PrivateLinOptVI, "linopt-vi on noisy running sums")
agents.add("private-linopt-po", PrivateLinOptPO, "linopt-po on noisy running sums")
agents.add("tacit-joint", TacitJoint, "running sums with few releases, noise-aware planning")
agents.add("uniform", Uniform, "reference: uniformly random actions")
agents.add("optimal", Optimal, "reference: the true optimum, revealed to it")
agents.add("do-nothing", DoNothing, "reference for linear control: no input at all")


def make_agent(name: str, **parameters: Any) -> Agent:
    """The agent of that name; privacy parameters only where there is privacy."""
    entry = agents.entry(name)
    for parameter in PRIVACY_PARAMETERS:
        if parameter in parameters and parameter not in entry.parameters:
            raise InvalidInput(
                f"{name} adds no noise and takes no {parameter}: leave it out, or choose a private "
                "agent (`tacit list agents`)"
            )
    if "epsilon" in entry.parameters and "epsilon" not in parameters:
        raise InvalidInput(f"{name} is private and needs an epsilon (there is no default)")
    return agents.make(name, parameters)
