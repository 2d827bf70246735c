"""Algorithms under the names of their papers: a statistic, a privatizer and a planner each.

Classes are imported when they are first asked for: a device needs one of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tacit.agents.base import Agent
from tacit.agents.catalogue import agents, make_agent

if TYPE_CHECKING:
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

_CLASSES = {
    "DpLsviAdaptive": "tacit.agents.dp_lsvi",
    "DpLsviBatch": "tacit.agents.dp_lsvi",
    "DpLsviUCBPlusPlus": "tacit.agents.dp_lsvi",
    "LdpOBI": "tacit.agents.ldp_obi",
    "LdpPSRL": "tacit.agents.ldp_psrl",
    "LsviUCB": "tacit.agents.lsvi",
    "LsviUCBPlusPlus": "tacit.agents.lsvi",
    "OBI": "tacit.agents.obi",
    "Optimal": "tacit.agents.references",
    "PSRL": "tacit.agents.psrl",
    "ShuffleOBI": "tacit.agents.shuffle_obi",
    "TacitLinear": "tacit.agents.tacit_linear",
    "TacitLocal": "tacit.agents.tacit_local",
    "UcbVI": "tacit.agents.ucb_vi",
    "Uniform": "tacit.agents.references",
}

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


def __getattr__(name: str) -> Any:
    if name not in _CLASSES:
        raise AttributeError(f"module 'tacit.agents' has no attribute {name!r}")
    return getattr(importlib.import_module(_CLASSES[name]), name)
