"""Gymnasium's classic control and linear systems as compiled worlds, and episodes in them.

The secret truth of simulated people. States, observations and rewards follow Gymnasium's code step
by step, its single precision included (tests/problems/test_classic_control.py); starting states
have the same law, from numbers that depend on the episode's key only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tacit.arrays import Array, IntArray
from tacit.grid import STEPS
from tacit.kernels import kernel
from tacit.kernels.excitation import uniform_at
from tacit.kernels.public.scores import SOFTMAX, UNIFORM, Scoring, features_of, scored_action
from tacit.kernels.sampling import draw_within

CART_POLE, ACROBOT, MOUNTAIN_CAR, MOUNTAIN_CAR_CONTINUOUS, PENDULUM, LINEAR = 0, 1, 2, 3, 4, 5
TABLE = 6

TABLE_HEAD = 6
"""Numbers before the start law of a table: states, stages, 0/1 rewards, offset, scale, and how many
coordinates of a state are seen (0 if its number is)."""

STEP_CELLS = 16
"""Numbers that a step may use; the first ones belong to the start."""


class World(NamedTuple):
    """Everything that an episode reads; secret but for sizes and horizon."""

    kind: int
    p: Array  # parameters of this kind
    horizon: int
    states: int
    observations: int  # size of the observation
    actions: int  # number of actions, or dimension of the box
    discrete: bool


@kernel
def start(world: World, key: int, s: Array) -> None:
    """Fill the first state."""
    p = world.p
    s[:] = 0.0
    if world.kind == CART_POLE:
        for i in range(4):
            s[i] = p[8] * (2.0 * uniform_at(key, 0, i) - 1.0)
    elif world.kind == ACROBOT:
        for i in range(4):
            s[i] = np.float32(0.1 * (2.0 * uniform_at(key, 0, i) - 1.0))
    elif world.kind == MOUNTAIN_CAR or world.kind == MOUNTAIN_CAR_CONTINUOUS:
        s[0] = p[3] + (p[4] - p[3]) * uniform_at(key, 0, 0)
    elif world.kind == PENDULUM:
        s[0] = math.pi * (2.0 * uniform_at(key, 0, 0) - 1.0)
        s[1] = 2.0 * uniform_at(key, 0, 1) - 1.0
    elif world.kind == TABLE:
        s[0] = (
            draw_within(p, TABLE_HEAD, TABLE_HEAD + int(p[0]), uniform_at(key, 0, 0)) - TABLE_HEAD
        )
    else:
        n, d = world.states, world.actions
        for i in range(n):
            s[i] = p[n * n + n * d + 2 + i]


@kernel
def observe(world: World, s: Array, out: Array) -> None:
    """Fill the observation, rounded to single precision as Gymnasium does."""
    if world.kind == ACROBOT:
        out[0], out[1] = np.float32(math.cos(s[0])), np.float32(math.sin(s[0]))
        out[2], out[3] = np.float32(math.cos(s[1])), np.float32(math.sin(s[1]))
        out[4], out[5] = np.float32(s[2]), np.float32(s[3])
    elif world.kind == PENDULUM:
        out[0], out[1] = np.float32(math.cos(s[0])), np.float32(math.sin(s[0]))
        out[2] = np.float32(s[1])
    elif world.kind == TABLE:
        p = world.p
        n = int(p[5])
        first = p.shape[0] + (int(s[0]) - int(p[0])) * n
        for i in range(n):
            out[i] = p[first + i]
        if n == 0:
            out[0] = s[0]
    else:
        for i in range(world.states):
            out[i] = np.float32(s[i])


@kernel
def _cart_pole(p: Array, s: Array, a: float) -> tuple[float, bool]:
    """Gymnasium's cart-pole; p = gravity, cart, pole, half length, force, tau, angle, position."""
    force = p[4] if a == 1.0 else -p[4]
    total, moment = p[2] + p[1], p[2] * p[3]
    cosine, sine = math.cos(s[2]), math.sin(s[2])
    temp = (force + moment * (s[3] * s[3]) * sine) / total
    angular = (p[0] * sine - cosine * temp) / (
        p[3] * (4.0 / 3.0 - p[2] * (cosine * cosine) / total)
    )
    linear = temp - moment * angular * cosine / total
    s[0] += p[5] * s[1]
    s[1] += p[5] * linear
    s[2] += p[5] * s[3]
    s[3] += p[5] * angular
    return 1.0, s[0] < -p[7] or s[0] > p[7] or s[2] < -p[6] or s[2] > p[6]


@kernel
def _acrobot_slope(p: Array, s: Array, torque: float, out: Array) -> None:
    """Time derivative of (angle 1, angle 2, speeds); p = m1, m2, l1, lc1, lc2, inertia."""
    m1, m2, l1, lc1, lc2, inertia, g = p[0], p[1], p[2], p[3], p[4], p[5], 9.8
    c2, s2 = math.cos(s[1]), math.sin(s[1])
    d1 = m1 * lc1**2 + m2 * (l1**2 + lc2**2 + 2 * l1 * lc2 * c2) + inertia + inertia
    d2 = m2 * (lc2**2 + l1 * lc2 * c2) + inertia
    phi2 = m2 * lc2 * g * math.cos(s[0] + s[1] - math.pi / 2.0)
    phi1 = (
        -m2 * l1 * lc2 * s[3] ** 2 * s2
        - 2 * m2 * l1 * lc2 * s[3] * s[2] * s2
        + (m1 * lc1 + m2 * l1) * g * math.cos(s[0] - math.pi / 2)
        + phi2
    )
    second = (torque + d2 / d1 * phi1 - m2 * l1 * lc2 * s[2] ** 2 * s2 - phi2) / (
        m2 * lc2**2 + inertia - d2**2 / d1
    )
    out[0], out[1] = s[2], s[3]
    out[2], out[3] = -(d2 * second + phi1) / d1, second


@kernel
def _wrap(x: float) -> float:
    while x > math.pi:
        x -= 2.0 * math.pi
    while x < -math.pi:
        x += 2.0 * math.pi
    return x


@kernel
def _acrobot(p: Array, s: Array, a: float, spare: Array) -> tuple[float, bool]:
    """Gymnasium's acrobot: one Runge-Kutta step of p[6] seconds; p[7] torque, p[8] height."""
    torque, dt = (a - 1.0) * p[7], p[6]
    k1, k2, k3, k4, at = spare[:4], spare[4:8], spare[8:12], spare[12:16], spare[16:20]
    _acrobot_slope(p, s, torque, k1)
    for i in range(4):
        at[i] = s[i] + dt / 2.0 * k1[i]
    _acrobot_slope(p, at, torque, k2)
    for i in range(4):
        at[i] = s[i] + dt / 2.0 * k2[i]
    _acrobot_slope(p, at, torque, k3)
    for i in range(4):
        at[i] = s[i] + dt * k3[i]
    _acrobot_slope(p, at, torque, k4)
    for i in range(4):
        s[i] += dt / 6.0 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i])
    s[0], s[1] = _wrap(s[0]), _wrap(s[1])
    s[2] = min(max(s[2], -4 * math.pi), 4 * math.pi)
    s[3] = min(max(s[3], -9 * math.pi), 9 * math.pi)
    done = -math.cos(s[0]) - math.cos(s[1] + s[0]) > p[8]
    return (0.0 if done else -1.0), done


@kernel
def _mountain_car(p: Array, s: Array, a: float) -> tuple[float, bool]:
    """Gymnasium's mountain car; p = force, gravity, goal, start from, start to."""
    speed = s[1] + ((a - 1.0) * p[0] + math.cos(3 * s[0]) * (-p[1]))
    speed = min(max(speed, -0.07), 0.07)
    position = min(max(s[0] + speed, -1.2), 0.6)
    if position == -1.2 and speed < 0:
        speed = 0.0
    s[0], s[1] = position, speed
    return -1.0, position >= p[2] and speed >= 0.0


@kernel
def _mountain_car_continuous(p: Array, first: bool, s: Array, a: float) -> tuple[float, bool]:
    """Gymnasium's continuous mountain car, whose state is in single precision after one step."""
    force = np.float32(a)
    push = np.float32(
        np.float32(force * np.float32(p[0]))
        - np.float32(
            p[1] * math.cos(3 * s[0] if first else np.float32(np.float32(3) * np.float32(s[0])))
        )
    )
    if first:
        speed = s[1] + push
    else:
        speed = float(np.float32(np.float32(s[1]) + push))
    speed = min(max(speed, -0.07), 0.07)
    if first:
        position = s[0] + speed
    else:
        position = float(np.float32(np.float32(s[0]) + np.float32(speed)))
    position = min(max(position, -1.2), 0.6)
    if position == -1.2 and speed < 0:
        speed = 0.0
    done = position >= p[2] and speed >= 0.0
    reward = (100.0 if done else 0.0) - float(force) ** 2 * 0.1
    s[0], s[1] = float(np.float32(position)), float(np.float32(speed))
    return reward, done


@kernel
def _pendulum(p: Array, s: Array, a: float) -> tuple[float, bool]:
    """Gymnasium's pendulum; p = gravity, mass, length, largest torque, tau, largest speed."""
    u = np.float32(p[3] * a)
    angle = (s[0] + math.pi) % (2 * math.pi) - math.pi
    cost = angle**2 + 0.1 * s[1] ** 2 + float(np.float32(0.001) * (u * u))
    push = float(np.float32(3.0 / (p[1] * p[2] ** 2)) * u)
    speed = s[1] + (3 * p[0] / (2 * p[2]) * math.sin(s[0]) + push) * p[4]
    speed = min(max(speed, -p[5]), p[5])
    s[0], s[1] = s[0] + speed * p[4], speed
    return -cost, False


@kernel
def _linear(world: World, key: int, h: int, s: Array, a: Array, free: Array) -> tuple[float, bool]:
    """x' = A x + B u + w, w uniform in a ball (n <= 3), cost |x|^2 + r |u|^2; u = gain * action.

    p = A [n, n], B [n, d], noise radius, price r, start [n], gain.
    """
    n, d, p = world.states, world.actions, world.p
    at = n * n
    noise, price = p[n * n + n * d], p[n * n + n * d + 1]
    gain = p[n * n + n * d + 2 + n]
    cost = 0.0
    for i in range(n):
        cost += s[i] * s[i]
        free[i] = 0.0
        for j in range(n):
            free[i] += p[i * n + j] * s[j]
        for j in range(d):
            free[i] += p[at + i * d + j] * gain * a[j]
    for j in range(d):
        cost += price * (gain * a[j]) ** 2
    size = 0.0
    row = free[n:]
    for i in range(n):
        u = uniform_at(key, 0, STEP_CELLS + STEP_CELLS * h + 2 * i)
        v = uniform_at(key, 0, STEP_CELLS + STEP_CELLS * h + 2 * i + 1)
        row[i] = math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)
        size += row[i] * row[i]
    radius = uniform_at(key, 0, STEP_CELLS + STEP_CELLS * h + 15) ** (1.0 / n)
    for i in range(n):
        s[i] = free[i] + noise * radius * row[i] / math.sqrt(size)
    return -cost, False


@kernel
def _table(world: World, key: int, h: int, s: Array, a: float) -> tuple[float, bool]:
    """A table, stages and all.

    After head and start law p = chances up to s' [G, S, A, S], rewards [G, S, A], flags of the
    states that end an episode [S], and what is seen of a state [S, n].
    """
    p = world.p
    S, G, A = int(p[0]), int(p[1]), world.actions
    stage = h if G > 1 else 0
    pair = (stage * S + int(s[0])) * A + int(a)
    laws = TABLE_HEAD + S
    rewards = laws + G * S * A * S
    ends = rewards + G * S * A
    reward = p[rewards + pair]
    if p[2] > 0.0:
        reward = 1.0 if uniform_at(key, 0, STEP_CELLS + STEP_CELLS * h) < reward else 0.0
    u = uniform_at(key, 0, STEP_CELLS + STEP_CELLS * h + 1)
    first = laws + pair * S
    s[0] = draw_within(p, first, first + S, u) - first
    return p[3] + p[4] * reward, p[ends + int(s[0])] > 0.0


@kernel
def step(world: World, key: int, h: int, s: Array, a: Array, spare: Array) -> tuple[float, bool]:
    """Move the state on; a holds the action's number, or a point of [-1, 1]^actions.

    Returns:
        The reward, and whether the episode is over; ``spare`` [5 states] is room to work in.
    """
    p = world.p
    if world.kind == CART_POLE:
        return _cart_pole(p, s, a[0])
    if world.kind == ACROBOT:
        return _acrobot(p, s, a[0], spare)
    if world.kind == MOUNTAIN_CAR:
        return _mountain_car(p, s, a[0])
    if world.kind == MOUNTAIN_CAR_CONTINUOUS:
        return _mountain_car_continuous(p, h == 0, s, a[0])
    if world.kind == PENDULUM:
        return _pendulum(p, s, a[0])
    if world.kind == TABLE:
        return _table(world, key, h, s, a[0])
    return _linear(world, key, h, s, a, spare)


@kernel
def play(world: World, form: Scoring, theta: Array, key: int) -> float:
    """The return of one episode under the parameters ``theta``; all its chance is in ``key``."""
    s, o = np.empty(world.states), np.empty(world.observations)
    x, phi = np.empty(o.shape[0]), np.empty(form.size)
    units, v = np.empty(max(form.hidden, 1)), np.empty(form.outputs)
    u, a, spare = np.full(form.outputs, 0.5), np.zeros(form.outputs), np.empty(5 * world.states)
    draws = form.head == SOFTMAX or form.head == UNIFORM
    start(world, key, s)
    total = 0.0
    for h in range(world.horizon):
        observe(world, s, o)
        features_of(form, o, x, phi)
        if draws:
            for i in range(form.outputs):
                u[i] = uniform_at(key, 1, h * form.outputs + i)
        scored_action(form, theta, o, phi, u, units, v, a)
        reward, done = step(world, key, h, s, a, spare)
        total += reward
        if done:
            break
    return total


@kernel
def play_batch(
    world: World,
    form: Scoring,
    w: Array,
    sigma: float,
    z: IntArray,
    keys: IntArray,
    returns: Array,
) -> None:
    """Person k plays w + sigma z_k, z in steps of the grid; fills their returns [n]."""
    n, d = z.shape
    theta = np.empty(d)
    for k in range(n):
        for j in range(d):
            theta[j] = w[j] + sigma * z[k, j] / STEPS
        returns[k] = play(world, form, theta, keys[k])
