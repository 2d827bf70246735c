"""Learners on the three named systems as curves, with the references of every plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacit.experiments import draw
from tacit.experiments.evidence import Evidence, Runs
from tacit.experiments.figure import Curve, Named, Size
from tacit.experiments.judge import mean
from tacit.intervals import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

SYSTEMS = ("lq-scalar", "lq-double-integrator", "lq-thermal")
EPSILONS = (0.1, 1.0, 10.0)
DELTA = 1e-5
REFERENCES = ("do-nothing", "certainty-equivalence", "thompson")


def systems(size: Size) -> tuple[str, ...]:
    """As many of the named systems as the size has instances."""
    return SYSTEMS[: size.instances]


def curve(key: str, label: str, agent: str, system: str, size: Size, **parameters: Any) -> Curve:
    """Runs of one agent on one system."""
    return Curve(
        key=f"{key}:{system}",
        label=label,
        agent=Named(agent, parameters),
        problems=(Named(system),),
        episodes=size.episodes,
        runs=size.runs,
    )


def references(system: str, size: Size) -> list[Curve]:
    """Doing nothing, and two learners without privacy."""
    return [curve(name, name, name, system, size) for name in REFERENCES]


def over_idle(evidence: Evidence, key: str, system: str) -> Interval:
    """Mean regret over that of doing nothing, which is known exactly."""
    idle = evidence.curve(f"do-nothing:{system}")
    return mean(evidence.curve(f"{key}:{system}").runs[:, -1] / idle.final.mean())


def worst_over_idle(evidence: Evidence, key: str, system: str) -> float:
    """The largest regret of a single run over that of doing nothing."""
    idle = evidence.curve(f"do-nothing:{system}")
    return float(evidence.curve(f"{key}:{system}").runs[:, -1].max() / idle.final.mean())


def picture(evidence: Evidence, title: str) -> Picture:
    """One panel of regret per system."""
    shown = systems(evidence.size)
    drawing, panels = draw.canvas(len(shown), title)
    for axes, system in zip(panels, shown, strict=True):
        drawn: list[Runs] = [
            runs for key, runs in evidence.curves.items() if key.endswith(f":{system}")
        ]
        draw.regret_panel(axes, drawn, system)
    return drawing
