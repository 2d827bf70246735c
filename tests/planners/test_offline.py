"""Planners of logs: blind like all others, on what one release about a whole log says."""

from typing import ClassVar

import pytest

import tacit
from contracts.log_planner import LogPlannerContract
from logs.worlds import chain, mapping
from tacit.agents import Agent
from tacit.errors import InvalidInput
from tacit.planners.offline import OfflinePlanner


class TestTacitOffline(LogPlannerContract):
    subject: ClassVar[type] = OfflinePlanner
    agent_name = "tacit-offline"


class TestOutcomes(TestTacitOffline):
    def agent(self) -> Agent:
        return tacit.agent("tacit-offline", epsilon=1.0, counts="outcomes")


class TestDpApvi(TestTacitOffline):
    agent_name = "dp-apvi"


class TestDpVapvi(TestTacitOffline):
    agent_name = "dp-vapvi"


def test_who_learns_from_a_log_does_not_learn_from_people() -> None:
    with pytest.raises(InvalidInput, match="tacit offline LOG --agent dp-apvi"):
        tacit.simulate(chain(), tacit.agent("dp-apvi", epsilon=1.0), 10)


def test_who_learns_from_people_does_not_learn_from_a_log(tmp_path) -> None:
    psrl = tacit.agent("psrl")
    with pytest.raises(InvalidInput, match="psrl learns from people.*tacit-offline, dp-apvi"):
        tacit.offline(tmp_path, mapping(chain()), psrl, noise="simulated")
    with pytest.raises(InvalidInput, match="needs an epsilon"):
        tacit.offline(tmp_path, mapping(chain()), "dp-apvi", noise="simulated")
