"""Times rlberry-scool's UCBVI and LSVI-UCB; run by the Python that has it, which need not have us.

Reads one JSON object from stdin (agent, P, R, initial, horizon, episodes, seed) and prints one:
microseconds of processor time per episode, and the version. The environment is as quick as a plain
Gymnasium environment can be, so that what is timed is the library.
"""

from __future__ import annotations

import bisect
import itertools
import json
import sys
import time
from typing import Any


def main() -> None:
    """Measure once."""
    import importlib.metadata

    order = json.load(sys.stdin)
    agent = _agent(order, _environment(order))
    began = time.process_time()
    agent.fit(budget=order["episodes"])
    took = time.process_time() - began
    answer = {
        "microseconds": 1e6 * took / order["episodes"],
        "version": importlib.metadata.version("rlberry-scool"),
        "python": sys.version.split()[0],
    }
    print(json.dumps(answer))


def _environment(order: dict[str, Any]) -> Any:
    import gymnasium
    import numpy as np
    from rlberry.spaces import Discrete

    S, A = len(order["R"]), len(order["R"][0])
    laws = [[list(itertools.accumulate(row)) for row in rows] for rows in order["P"]]
    start = list(itertools.accumulate(order["initial"]))
    rng = np.random.default_rng(order["seed"])

    class Tables(gymnasium.Env):
        """The problem's tables; an episode ends when the agent says so."""

        observation_space = Discrete(S)
        action_space = Discrete(A)
        reward_range = (0.0, 1.0)
        state = 0

        def reset(self, **options: Any) -> tuple[int, dict[str, Any]]:
            self.state = min(bisect.bisect(start, rng.random()), S - 1)
            return self.state, {}

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            reward = order["R"][self.state][action]
            self.state = min(bisect.bisect(laws[self.state][action], rng.random()), S - 1)
            return self.state, reward, False, False, {}

    return Tables()


def _agent(order: dict[str, Any], environment: Any) -> Any:
    if order["agent"] == "ucb-vi":
        from rlberry_scool.agents.ucbvi import UCBVIAgent

        return UCBVIAgent(environment, gamma=1.0, horizon=order["horizon"])
    import numpy as np
    from rlberry_scool.agents.features import FeatureMap
    from rlberry_scool.agents.linear import LSVIUCBAgent

    S, A = len(order["R"]), len(order["R"][0])
    table = np.eye(S * A).reshape(S, A, S * A)

    class OneHot(FeatureMap):  # type: ignore[misc]
        """One feature for each pair of a state and an action."""

        def __init__(self) -> None:
            self.shape = (S * A,)

        def map(self, observation: int, action: int) -> Any:
            return table[observation, action]

    return LSVIUCBAgent(
        environment,
        horizon=order["horizon"],
        feature_map_fn=lambda env: OneHot(),
        gamma=1.0,
    )


if __name__ == "__main__":
    main()
