"""Gymnasium's classic control and linear systems as compiled episodic problems.

The declared scales are public choices about observations, such as where an episode ends; none was
fitted to anybody's data.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.errors import InvalidInput
from tacit.kernels.raw import classic_control
from tacit.kernels.raw.classic_control import World
from tacit.policies.parametric import scoring_of
from tacit.problems.catalogue import make_problem
from tacit.problems.episodic import CompiledEpisodes
from tacit.problems.lq import LQSystem
from tacit.problems.tabular import TabularMDP, cumulative
from tacit.validate import table_fits

ANGLE = 12 * 2 * math.pi / 360
UNIT = np.array([[-1.0], [1.0]])


def cart_pole() -> CompiledEpisodes:
    """CartPole-v1: push a cart left or right so that its pole stays up; 1 per step, 500 steps."""
    p = np.array([9.8, 1.0, 0.1, 0.5, 10.0, 0.02, ANGLE, 2.4, 0.05])
    world = World(classic_control.CART_POLE, p, 500, 4, 4, 2, discrete=True)
    form = scoring_of([2.4, 3.0, 0.21, 3.0])
    return CompiledEpisodes(world, returns=(0.0, 500.0), form=form, name="cart-pole")


def acrobot() -> CompiledEpisodes:
    """Acrobot-v1: swing two links up with the joint between them; -1 per step until then."""
    p = np.array([1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.2, 1.0, 1.0])
    world = World(classic_control.ACROBOT, p, 500, 4, 6, 3, discrete=True)
    form = scoring_of([1.0, 1.0, 1.0, 1.0, 4 * math.pi, 9 * math.pi], features="affine")
    return CompiledEpisodes(world, returns=(-500.0, 0.0), form=form, name="acrobot")


def mountain_car() -> CompiledEpisodes:
    """MountainCar-v0: rock a weak car up a hill; -1 per step until it is there."""
    p = np.array([0.001, 0.0025, 0.5, -0.6, -0.4])
    world = World(classic_control.MOUNTAIN_CAR, p, 200, 2, 2, 3, discrete=True)
    form = scoring_of([0.9, 0.07], shift=[-0.3, 0.0], features="quadratic")
    return CompiledEpisodes(world, returns=(-200.0, 0.0), form=form, name="mountain-car")


def mountain_car_continuous() -> CompiledEpisodes:
    """MountainCarContinuous-v0: the same with a price of force and 100 at the top."""
    p = np.array([0.0015, 0.0025, 0.45, -0.6, -0.4])
    world = World(classic_control.MOUNTAIN_CAR_CONTINUOUS, p, 999, 2, 2, 1, discrete=False)
    form = scoring_of([0.9, 0.07], shift=[-0.3, 0.0], features="quadratic", head="tanh", box=UNIT)
    name = "mountain-car-continuous"
    return CompiledEpisodes(world, returns=(-100.0, 100.0), form=form, name=name)


def pendulum() -> CompiledEpisodes:
    """Pendulum-v1: swing a pendulum up and keep it there; 200 steps, returns from -1600 to 0.

    What is less is cut at -1600, of uniform actions one episode in seven: no policy returns less
    than -200 (pi^2 + 0.1 * 8^2 + 0.001 * 2^2) = -3254.7, but a range twice as wide has half the
    signal, and how far below -1600 a policy is teaches little.
    """
    p = np.array([10.0, 1.0, 1.0, 2.0, 0.05, 8.0])
    world = World(classic_control.PENDULUM, p, 200, 2, 3, 1, discrete=False)
    form = scoring_of([1.0, 1.0, 8.0], features="quadratic", head="tanh", box=2.0 * UNIT)
    return CompiledEpisodes(world, returns=(-1600.0, 0.0), form=form, name="pendulum")


CLASSIC: dict[str, Callable[[], CompiledEpisodes]] = {
    "CartPole-v1": cart_pole,
    "Acrobot-v1": acrobot,
    "MountainCar-v0": mountain_car,
    "MountainCarContinuous-v0": mountain_car_continuous,
    "Pendulum-v1": pendulum,
}
"""By Gymnasium's ids."""


def linear_episodes(system: LQSystem) -> CompiledEpisodes:
    """A linear system of which a search is told nothing but sizes and what an episode may cost.

    Inputs are cut at the largest gain allowed in every direction. Costs |x|^2 + r |u|^2, one start
    and noise in a ball are needed. The declared range holds whatever is done: |u| <= sqrt(d) gain,
    and with |x_1| <= 1 and C_A + gain C_B + C_w <= 1 states stay within ``reach``.
    """
    n, d, gain = system.states, system.inputs, system.gain
    price, radius = float(system.R[0, 0]), float(system.noise[0, 0])
    plain = (
        np.array_equal(system.Q, np.eye(n))
        and np.array_equal(system.R, price * np.eye(d))
        and np.array_equal(system.noise, radius * np.eye(n))
        and len(system.starts) == 1
        and n <= 3
    )
    if not plain:
        raise InvalidInput(
            f"{system.name} cannot be searched: this needs the cost |x|^2 + r |u|^2, at most three "
            "states, one start and noise in a ball"
        )
    A, B = system.theta[:n].T, system.theta[n:].T
    p = [*A.ravel(), *B.ravel(), radius, price, *system.starts[0], gain]
    box = gain * np.array([[-1.0] * d, [1.0] * d])
    reach = 1.0 + (math.sqrt(d) - 1.0) * gain * system.input_bound / (1.0 - system.state_bound)
    return CompiledEpisodes(
        World(classic_control.LINEAR, np.array(p), system.horizon, n, n, d, discrete=False),
        returns=(-system.horizon * (reach**2 + price * d * gain**2), 0.0),
        form=scoring_of(np.ones(n), head="clipped", box=box),
        name=system.name,
        parameters=system.parameters,
    )


def table_episodes(
    table: TabularMDP, returns: tuple[float, float] | None = None
) -> CompiledEpisodes:
    """A table of which a search is told nothing but what is seen of states and episodes return.

    Rewards are in their natural units, and an episode is over in a terminal state. The policy has
    one score for each state and action, whatever the step; where the table declares coordinates of
    its states, scores are linear in them (and 1), scaled by their least and largest.
    """
    S, A, H = table.states, table.actions, table.horizon
    table_fits("the world of a table", len(table.P), S, A, S)
    ends = np.diff(table.pairs.first) == 0
    if not (table.pairs.number[~ends] >= 0).all():
        raise InvalidInput(f"{table.name} forbids actions, which a search could not follow")
    scaled = table.describe().get("rescaling", {"offset": 0.0, "scale": 1.0})
    offset, unit = float(scaled["offset"]), float(scaled["scale"])
    form, seen = scoring_of((), features="one-hot"), np.zeros((S, 0))
    if table.coordinates is not None:
        seen = table.coordinates
        low, high = seen.min(axis=0), seen.max(axis=0)
        scale = np.where(high > low, (high - low) / 2, 1.0)
        form = scoring_of(scale, shift=(low + high) / 2, features="affine")
    p = [float(S), float(max(len(table.P), len(table.R))), float(table.rewards == "bernoulli")]
    stages = (int(p[1]), S, A)
    laws = cumulative(np.broadcast_to(table.P, (*stages, S)))
    rewards = np.broadcast_to(table.R, stages)
    p += [offset, unit, float(seen.shape[1])]
    parts = [p, cumulative(table.initial), laws.ravel(), rewards.ravel(), ends, seen.ravel()]
    return CompiledEpisodes(
        World(classic_control.TABLE, np.concatenate(parts), H, 1, seen.shape[1] or S, A, True),
        returns=returns or (H * min(offset, 0.0), H * max(offset + unit, 0.0)),
        form=form,
        name=table.name,
        parameters=table.parameters,
    )


def episodes(
    of: str = "lq-double-integrator", low: float | None = None, high: float | None = None
) -> CompiledEpisodes:
    """A problem with a model, as a search meets it: without.

    Args:
        of: its name: a table or a linear system.
        low: least return of an episode, public; by default that of the worst rewards.
        high: likewise the largest.
    """
    problem = make_problem(of)
    if isinstance(problem, LQSystem):
        episodic = linear_episodes(problem)
    elif isinstance(problem, TabularMDP):
        episodic = table_episodes(problem)
    else:
        raise InvalidInput(f"{of} is neither a table nor a linear system")
    if low is not None or high is not None:
        least, most = episodic.returns
        returns = least if low is None else low, most if high is None else high
        episodic = episodic.narrowed(returns)
    episodic.parameters = {"of": of, "low": low, "high": high}
    episodic.name = "episodes"
    return episodic
