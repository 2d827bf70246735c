"""What somebody does in the first hour, with the installed wheel and what the pages say.

Run by ``test_first_hour.py`` in an empty environment, in a folder of its own.
"""

import gymnasium
import numpy as np

import tacit
from tacit.sample_size import Limits


def main() -> None:
    # Ten lines.
    local = tacit.agent("tacit-local", epsilon=4.0)
    result = tacit.simulate("river-swim", local, episodes=20_000, runs=2)
    print(result.guarantee.brief())
    result.plot("regret.png")

    # A policy comes out, goes into a file, comes back and acts.
    result.policy.save("policy.json")
    policy = tacit.load_policy("policy.json")
    assert policy == result.policy
    assert policy.act(0, 0, np.random.default_rng(0)) in (0, 1)
    print(policy.to_frame().head(2))

    # An environment of one's own: a lamp that is on or off, and a switch.
    class Lamp(gymnasium.Env):
        observation_space = gymnasium.spaces.Discrete(2)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.on = 0
            return self.on, {}

        def step(self, action):
            if self.np_random.random() < 0.8:
                self.on = int(action)
            return self.on, float(self.on), False, False, {}

    joint = tacit.agent("tacit-joint", epsilon=1.0)
    learned = tacit.simulate(
        tacit.environment(Lamp(), horizon=5, rewards=(0.0, 1.0)), joint, episodes=3000, seed=1
    )
    print(learned.guarantee.brief())
    learned.policy.save("lamp.json")
    assert [tacit.load_policy("lamp.json").act(s, 0) for s in (0, 1)] == [1, 1]

    # Guarantees add up: the same person in both tasks, and in the second one three times.
    both = learned.guarantee + learned.guarantee.compose(3)
    assert both.epsilon_at(1e-5) > learned.guarantee.epsilon_at(1e-5)
    assert both.delta(both.epsilon_at(1e-5)) <= 1e-5 * (1 + 1e-6)
    print(both.to_dp_event())

    # How many people does it take?
    answer = tacit.sample_size(
        tacit.Experiment(problem="river-swim", agent=local, episodes=1, runs=8),
        epsilons=[4.0],
        limits=Limits(seconds=5),
    )
    print(answer)


if __name__ == "__main__":
    main()
