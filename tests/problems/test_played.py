"""What can only be played: episodes of any length become trajectories of H steps."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, Tuple
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.errors import InvalidInput
from tacit.policies.tabular import TabularPolicy
from tacit.problems.gymnasium.environments import _numbered, played_environment
from tacit.problems.played import Played, reward_range

RNG = np.random.default_rng


class Walk(gymnasium.Env):
    """Go up by action 1; at the top it terminates, and after ``patience`` steps it truncates."""

    def __init__(self, top: int = 3, patience: int = 99, observations=None, actions=None) -> None:
        self.observation_space = observations or Discrete(top)
        self.action_space = actions or Discrete(2)
        self.top, self.patience, self.over = top, patience, True

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps, self.over = 0, 0, False
        return self.place, {}

    def step(self, action):
        assert not self.over, "nothing is played after the end"
        self.steps += 1
        self.place += int(action)
        terminated, truncated = self.place == self.top, self.steps == self.patience
        self.over = terminated or truncated
        return min(self.place, self.top - 1), -1.0, terminated, truncated, {}


def always(action: int, horizon: int, states: int) -> TabularPolicy:
    table = np.full((horizon, states), action)
    table[:, -1] = 0  # in the state after the end
    return TabularPolicy(table)


def played(steps, *, states=3, actions=2, horizon=4, rewards=(-1.0, 1.0)) -> Played:
    return Played(
        lambda policy, rng: steps,
        states=states,
        actions=actions,
        horizon=horizon,
        rewards=rewards,
    )


def test_an_episode_that_terminates_is_over() -> None:
    world = played_environment(Walk(), horizon=6, rewards=(-1, 0))
    lived = world.rollout(always(1, 6, 4), RNG(0))
    assert lived.states.tolist() == [0, 1, 2, 3, 3, 3, 3] and world.ended == 3
    assert lived.actions.tolist() == [1, 1, 1, 0, 0, 0]
    # Nothing more is paid: 0 is the upper end of the declared range, 1 when rescaled.
    assert lived.rewards.tolist() == [0, 0, 0, 1, 1, 1]
    assert world.total(lived.rewards.sum(), 1) == -3.0


def test_an_episode_cut_by_the_environment_is_over_and_one_cut_by_the_horizon_is_not() -> None:
    cut = played_environment(Walk(patience=2), horizon=4, rewards=(-1, 0))
    assert cut.rollout(always(1, 4, 4), RNG(0)).states.tolist() == [0, 1, 3, 3, 3]
    whole = played_environment(Walk(patience=2), horizon=2, rewards=(-1, 0))
    assert whole.rollout(always(1, 2, 4), RNG(0)).states.tolist() == [0, 1, 2]


@given(
    st.lists(st.floats(-2, 3), min_size=1, max_size=5),
    st.booleans(),
    st.tuples(st.floats(-3, 1), st.floats(1.5, 4)),
)
def test_returns_are_those_of_the_episode_whatever_range_is_declared(paid, ends, declared) -> None:
    """Rescaled, padded and mapped back, H steps pay what the played ones did."""
    following = None if ends else 0
    steps = [(0, 1, reward, 0) for reward in paid[:-1]] + [(0, 1, paid[-1], following)]
    world = played(steps, horizon=5, rewards=declared)
    lived = world.rollout(always(0, 5, 4), RNG(0))
    assert world.total(lived.rewards.sum(), 1) == pytest.approx(sum(paid), abs=1e-9)
    assert lived.states.shape == (6,) and lived.states.max() <= world.ended
    over = ends or len(paid) < 5
    assert (lived.states[-1] == world.ended) == over
    after = lived.rewards[len(paid) :]
    assert np.all((after >= 0) & (after <= 1)) and world.total(after.sum() * 0, 0) == 0.0


def test_an_episode_takes_one_draw_of_the_users_stream() -> None:
    world = played_environment(Walk(), horizon=6, rewards=(-1, 0))
    one, other = RNG(5), RNG(5)
    world.rollout(always(1, 6, 4), one)
    world.rollout(world.uniform(), other)
    assert one.random() == other.random()


def test_an_environment_is_as_good_as_its_table() -> None:
    """Uniform actions return on average what the exact table says."""
    exact = tacit.problem("gym:FrozenLake-v1", horizon=10, map_name="4x4", is_slippery=False)
    lake = gymnasium.make("FrozenLake-v1", is_slippery=False, disable_env_checker=True)
    world = played_environment(lake, horizon=10, rewards=(0, 1))
    rng, uniform = RNG(1), world.uniform()
    assert (world.states, world.actions) == (17, 4) and world.name == "gym:FrozenLake-v1"
    mean = np.mean([world.rollout(uniform, rng).rewards.sum() for _ in range(2000)])
    value = exact.baseline()[1]
    assert abs(mean - value) < 5 * np.sqrt(value / 2000)


@pytest.mark.parametrize(
    "space",
    [
        Discrete(5, start=-2),
        MultiDiscrete([3, 4]),
        MultiDiscrete([[2, 2], [3, 2]]),
        MultiBinary(3),
        Tuple([Discrete(3), Discrete(2, start=1), MultiDiscrete([2, 2])]),
    ],
    ids=str,
)
def test_finite_spaces_are_numbered(space) -> None:
    numbered = _numbered(space, "it", "actions")
    items = [numbered.item(k) for k in range(numbered.size)]
    assert all(item in space for item in items)
    assert [numbered.number(item) for item in items] == list(range(numbered.size))
    space.seed(0)
    for _ in range(20):
        assert 0 <= numbered.number(space.sample()) < numbered.size


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "played 0 steps, but an episode has 1 to 4"),
        ([(0, 0, 0.0, 0)] * 5, "played 5 steps"),
        ([(0, 0, 0.0)], "as step 0, but a step is .state, action, reward, next state."),
        ([3], "3 as step 0"),
        ([(3, 0, 0.0, None)], "played state 3, but states are whole numbers from 0 to 2"),
        ([(0.0, 0, 0.0, None)], "played state 0.0"),
        ([(0, 2, 0.0, None)], "played action 2, but actions are whole numbers from 0 to 1"),
        ([(0, 0, 0.0, 7)], "played next state 7"),
        ([(0, 0, float("nan"), None)], "played reward nan, but a reward is a finite number"),
        ([(0, 0, "much", None)], "played reward 'much'"),
        ([(0, 0, 0.0, 1), (2, 0, 0.0, None)], "next state 1 in step 0 and state 2 in step 1"),
        ([(0, 0, 0.0, None), (2, 0, 0.0, None)], "only the last next state may be None"),
        (None, "failed while an episode was played: TypeError"),
    ],
)
def test_a_wrong_episode_is_one_sentence(steps, message: str) -> None:
    world = played(steps)
    with pytest.raises(InvalidInput, match=message):
        world.rollout(always(0, 4, 4), RNG(0))


@pytest.mark.parametrize("declared", [(0,), (1, 0), (0, 0), "01", None, (0, np.inf), ("a", 1)])
def test_a_range_of_rewards_is_two_numbers(declared) -> None:
    with pytest.raises(InvalidInput, match="rewards = "):
        reward_range(declared)


def test_a_reward_outside_the_range_is_noticed_before_the_first_user() -> None:
    with pytest.raises(InvalidInput, match="paid -1 in an episode before the first user.*0 and 1"):
        played_environment(Walk(), horizon=6, rewards=(0, 1)).try_out(RNG(0))


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        ({"observations": Box(0, 1, (2,))}, "has continuous observations.*tacit.Discretized"),
        ({"actions": Box(0, 1, (2,))}, "has continuous actions.*Discrete or MultiDiscrete"),
        ({"observations": gymnasium.spaces.Text(3)}, "Walk has observations, Text.*finitely many"),
        ({"observations": Tuple([Discrete(2), Box(0, 1)])}, "continuous observations"),
    ],
)
def test_other_spaces_are_explained(spaces, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        played_environment(Walk(**spaces), horizon=6, rewards=(-1, 0))


def test_the_horizon_is_declared_or_known() -> None:
    with pytest.raises(InvalidInput, match="Walk has no time limit: say after how many steps"):
        played_environment(Walk(), rewards=(-1, 0))
    lake = gymnasium.make("FrozenLake-v1", disable_env_checker=True)
    assert played_environment(lake, rewards=(0, 1)).horizon == 100
    with pytest.raises(InvalidInput, match="stops after 100 steps by itself"):
        played_environment(lake, rewards=(0, 1), horizon=101)


def test_nothing_of_it_is_known() -> None:
    world = played([(0, 0, 0.0, None)])
    task = world.task(10)
    assert np.isnan(world.optimal_value()) and task.revealed == ("end_reward", "terminal")
    assert np.flatnonzero(np.diff(task.pairs.first) == 0).tolist() == [world.ended]
    with pytest.raises(InvalidInput, match="nobody knows the reward and transitions of episodes"):
        world.task(10, ["transitions", "reward"])
