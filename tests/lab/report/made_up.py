"""A study that was never run: curves with known laws, for tables and pages."""

import json
from pathlib import Path

import numpy as np

from tacit.privacy.guarantee import Guarantee
from tacit.simulation.checkpoints import checkpoints
from tacit.simulation.result import Result
from tacit_lab.report.results import Arm, Study

PROBLEM = {
    "name": "river-swim",
    "parameters": {"states": 6, "horizon": 20},
    "horizon": 20,
    "optimal_value": 3.4,
    "baseline": {"name": "uniform policy", "value": 0.4},
}
GAP = 3.0


def arm(
    name: str,
    users: int,
    *,
    epsilon: float | None = None,
    seeds: int = 8,
    level: float = 1.0,
    power: float = 0.5,
    spread: float = 0.2,
    parameters: dict | None = None,
    chosen: dict | None = None,
) -> Arm:
    """Regret GAP * level * k^power, times a factor of each seed that all arms share in part."""
    episodes = checkpoints(users)
    common = np.random.default_rng(11).normal(0, 0.3, seeds)
    own = np.random.default_rng([len(name), users, int(1000 * (epsilon or 0))])
    factors = np.exp(common + own.normal(0, spread, seeds))
    regret = np.minimum(level * factors[:, None] * episodes**power, episodes) * GAP
    if epsilon is None:
        reference = name in ("uniform", "optimal")
        guarantee = (
            Guarantee("local", 0.0, 0.0, "no report at all", "exact", simulated=True)
            if reference
            else Guarantee("none", np.inf, 0.0, "none", "none", simulated=True)
        )
    else:
        guarantee = Guarantee(
            "local",
            epsilon,
            0.0,
            "subset selection over 72 cells",
            "exact",
            requested_epsilon=epsilon,
            requested_delta=0.0,
            delta_at_requested_epsilon=0.0,
            assumptions=("every participation sends exactly one report",),
            simulated=True,
        )
    given = dict(parameters or {})
    if epsilon is not None:
        given["epsilon"] = epsilon
    result = Result(
        problem=PROBLEM,
        agent={"name": name, "parameters": given, "notes": []},
        guarantee=guarantee,
        seed=0,
        seeds=tuple(range(seeds)),
        requested_episodes=users,
        episodes=episodes,
        regret=regret,
        reward=np.zeros_like(regret),
        interrupted=False,
        seconds=1.0,
        episodes_per_second=1e5,
    )
    return Arm(result, tuple((seed, 0) for seed in range(seeds)), chosen)


CHOSEN = {
    "parameter": "bonus_scale",
    "value": 0.1,
    "default": 1.0,
    "seeds": [1_000_000],
    "candidates": [{"value": 0.1, "mean": 12.0, "per_seed": [12.0]}],
    "brief": "bonus_scale = 0.1 was chosen among 0.1, 1.0",
    "deviation": "a chosen bonus scale deviates from the theory",
}
FAILURE = {
    "label": "ldp-obi <epsilon=4>",
    "seed": 3,
    "error": "ValueError: nothing & nowhere",
    "tries": 3,
    "traceback": "",
}


def study(seeds: int = 8) -> Study:
    """Two lengths; tacit-local costs 1/epsilon in regret, ldp-obi hardly learns."""
    arms = []
    for users in (10_000, 100_000):
        arms.append(arm("uniform", users, seeds=seeds, level=1.0, power=1.0, spread=0.0))
        arms.append(arm("psrl", users, seeds=seeds))
        scaled = {"bonus_scale": 0.1}
        arms.append(arm("ucb-vi", users, seeds=seeds, level=8, parameters=scaled, chosen=CHOSEN))
        for epsilon in (1.0, 2.0, 4.0, 8.0):
            arms.append(arm("tacit-local", users, epsilon=epsilon, seeds=seeds, level=40 / epsilon))
            arms.append(arm("ldp-obi", users, epsilon=epsilon, seeds=seeds, level=0.9, power=0.99))
    made = ({"versions": {"python": "3.11"}, "machine": {"system": "Linux", "cores": 2}},)
    return Study("made-up", tuple(arms), (FAILURE,), made, ("0.1",), "seeds = 8\n# <spec>\n")


def write_run(folder: Path, made: Arm) -> None:
    """The folder that ``tacit run --out`` would write."""
    made.result.save(folder)
    assert json.loads((folder / "manifest.json").read_text())["format"] == 1
