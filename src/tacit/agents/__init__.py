"""Algorithms under the names of their papers: a statistic, a privatizer and a planner each."""

from tacit.agents.base import Agent
from tacit.agents.catalogue import agents, make_agent
from tacit.agents.dp_lsvi import DpLsviAdaptive, DpLsviBatch, DpLsviUCBPlusPlus
from tacit.agents.ldp_obi import LdpOBI
from tacit.agents.ldp_psrl import LdpPSRL
from tacit.agents.lsvi import LsviUCB, LsviUCBPlusPlus
from tacit.agents.obi import OBI
from tacit.agents.psrl import PSRL
from tacit.agents.references import Optimal, Uniform
from tacit.agents.shuffle_obi import ShuffleOBI
from tacit.agents.tacit_linear import TacitLinear
from tacit.agents.tacit_local import TacitLocal
from tacit.agents.ucb_vi import UcbVI

__all__ = [
    "OBI",
    "PSRL",
    "Agent",
    "DpLsviAdaptive",
    "DpLsviBatch",
    "DpLsviUCBPlusPlus",
    "LdpOBI",
    "LdpPSRL",
    "Optimal",
    "ShuffleOBI",
    "LsviUCB",
    "LsviUCBPlusPlus",
    "TacitLinear",
    "TacitLocal",
    "UcbVI",
    "Uniform",
    "agents",
    "make_agent",
]
