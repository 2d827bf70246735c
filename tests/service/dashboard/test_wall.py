"""The dashboard stands on the public side of the wall."""

import numpy as np
import pytest

from service.devices import local_reports, trajectories
from tacit_service.dashboard.facts import FactReader
from tacit_service.dashboard.page import Window, render
from tacit_service.dashboard.view import build
from tacit_service.planning.loop import PlannerLoop
from test_architecture import MODULES, RAW, closure, imports, under

PUBLIC = ("deployment", "clock", "status", "billboard", "schema", "ids")


BLIND = ("plots", "words")
"""What works numbers out; these import nothing of the service but each other."""


@pytest.mark.parametrize("module", BLIND)
def test_what_is_worked_out_cannot_reach_raw_data_by_imports(module: str) -> None:
    here = "tacit_service.dashboard"
    direct = imports(MODULES[f"{here}.{module}"])
    outside = direct - {here, *(f"{here}.{m}" for m in BLIND)}
    reached = set().union(*(closure(name) for name in outside))
    ours = {name for name in reached if name.startswith("tacit_service")}
    assert ours | {name for name in reached if under(name, *RAW)} == set()


class OnlyPublic:
    """A collector of which only public numbers can be asked."""

    def __init__(self, collector) -> None:
        self._collector = collector

    def __getattr__(self, name: str):
        assert name in PUBLIC, f"the dashboard asked for {name}"
        return getattr(self._collector, name)


@pytest.mark.parametrize("model", ["local", "joint"])
def test_only_public_numbers_are_asked_for(deploy, opened, joint_text, model: str) -> None:
    deployment = deploy(joint_text, users=200, batch=40) if model == "joint" else deploy()
    make = trajectories if model == "joint" else local_reports
    collector, rng = opened(deployment), np.random.default_rng(0)
    batch = collector.status().next_batch
    collector.upload(deployment.task_id, make(collector, rng, batch), None)
    while PlannerLoop(collector).step():
        pass
    facts = FactReader(OnlyPublic(collector)).read(None)
    assert facts.versions[-1].version == 1
    assert "<h1>" in render(build(facts), facts, Window())


def test_two_crowds_with_one_release_get_one_estimate(deploy, opened) -> None:
    """Nothing but the stored release decides what is said about a policy."""
    said = []
    for seed in (0, 1):
        collector = opened(deploy())
        reports = local_reports(collector, np.random.default_rng(seed), 100)
        collector.upload(collector.deployment.task_id, reports, None)
        while PlannerLoop(collector).step():
            pass
        first = said[0][0] if said else collector.billboard.published(1)
        reader = FactReader(collector)
        collector.billboard.published = lambda version, entry=first: (
            entry
        )  # the same release for both
        said.append((first, reader.read(None).estimates))
    assert said[0][1] == said[1][1]
