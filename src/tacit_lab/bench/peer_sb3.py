"""Trains Stable-Baselines3's PPO on as many episodes; run by the Python that has it.

Reads one JSON object from stdin (environment, episodes, tests, seed) and prints one: the mean
return of the trained policy on fresh episodes, and the version. Nothing about it is private.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SEVERAL = 1000
"""Steps of the longest episode: more than any that is asked for here."""


def main() -> None:
    """Train and test once."""
    import importlib.metadata

    import gymnasium
    import numpy as np
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import StopTrainingOnMaxEpisodes

    order: dict[str, Any] = json.load(sys.stdin)
    model = PPO("MlpPolicy", gymnasium.make(order["environment"]), seed=order["seed"], device="cpu")
    model.learn(SEVERAL * order["episodes"], StopTrainingOnMaxEpisodes(order["episodes"]))
    env, returns = gymnasium.make(order["environment"]), []
    for test in range(order["tests"]):
        observed, _ = env.reset(seed=10**6 + test)
        total, over = 0.0, False
        while not over:
            action, _ = model.predict(observed, deterministic=True)
            observed, reward, ended, cut, _ = env.step(action)
            total, over = total + float(reward), ended or cut
        returns.append(total)
    version = importlib.metadata.version("stable-baselines3")
    print(json.dumps({"return": float(np.mean(returns)), "version": version}))


if __name__ == "__main__":
    main()
