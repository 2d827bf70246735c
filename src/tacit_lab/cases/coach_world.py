"""The coach: an app that sends messages so that people walk more, without wearing them out.

Written from the published description of StepCountJITAI (arXiv 2411.00336): a context that changes
daily and is seen through an uncertain classifier, habituation, disengagement risk, four messages,
50 days. What the description does not say is ours: how well the classifier does, the steps of a day
without a message, the kinds of people, and that a day whose steps were not recorded pays nothing.

There are two worlds. :func:`coach` is a table, the discretised world, whose optimum is known.
:class:`CoachEnv` has people with numbers between the cells and of several kinds, seen through the
same public cells; nobody knows its optimum.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from tacit.arrays import Array
from tacit.problems.tabular import TabularMDP
from tacit.validate import flag, integer, number

DAYS = 50
MESSAGES = ("nothing", "any", "for calm days", "for busy days")
CONTEXTS = ("calm", "busy")
BASE, ANY, FITTING = 50.0, 50.0, 200.0
"""Steps of a day without a message (ours); what a message of any kind adds to a person who is not
used to messages, and what one adds that fits the day."""
MOST = BASE + FITTING
USED, FRESH = 0.05, 0.1
"""Habituation grows by the first with a message, and shrinks by the share without one."""
HURT, HEAL, QUIT = 0.4, 0.1, 0.99
"""Disengagement grows by the first after a message for the wrong day, shrinks by the share after
one that fits or fits any day; beyond the third a person quits."""
HABITUATION = np.linspace(0.0, 1.0, 10)
RISK = np.linspace(0.0, 0.9, 6)
"""Public grids; what lies between is rounded, at random in the table, to the nearest in the app."""
SHAPE = (len(CONTEXTS), len(HABITUATION), len(RISK))
LEFT = len(CONTEXTS) * len(HABITUATION) * len(RISK)
"""The state of somebody who quit: the last one, after those of the grid."""
QUITTER = (0.0, 0.0, 1.0)
"""Context, habituation and risk of somebody who quit: the risk alone means something."""


class Kind(NamedTuple):
    """How a person takes messages (ours)."""

    share: float
    used: float
    hurt: float


KINDS = (Kind(0.6, USED, HURT), Kind(0.2, 0.02, HURT), Kind(0.2, USED, 0.6))


def after_message(
    habituation: float, risk: float, message: int, fits: bool, kind: Kind = KINDS[0]
) -> tuple[float, float]:
    """Habituation and risk after a day."""
    if message == 0:
        return habituation * (1.0 - FRESH), risk
    habituation = min(1.0, habituation + kind.used)
    return habituation, risk * (1.0 - HEAL) if fits else min(1.0, risk + kind.hurt)


def steps_of(habituation: float, message: int, fits: bool) -> float:
    """Steps of a day."""
    if message == 0 or not fits:
        return BASE
    return BASE + (ANY if message == 1 else FITTING) * (1.0 - habituation)


def coach(horizon: int = DAYS, uncertainty: float = 0.2, habituation: bool = True) -> TabularMDP:
    """Messages that make people walk, until they are used to them or quit (121 states).

    Args:
        horizon: days.
        uncertainty: how often the classifier takes a calm day for a busy one, or the other way.
        habituation: whether people get used to messages; the grid stays the same.
    """
    wrong = number(uncertainty, "uncertainty", low=0.0, high=0.5)
    kind = KINDS[0] if flag(habituation, "habituation") else Kind(1.0, 0.0, HURT)
    rows, rewards = [], np.zeros((LEFT + 1, len(MESSAGES)))
    for s, (seen, i, j) in enumerate(itertools.product(*map(range, SHAPE))):
        for message in range(len(MESSAGES)):
            for true in range(len(CONTEXTS)):
                chance = 1.0 - wrong if true == seen else wrong
                fits = message in (1, 2 + true)
                h, d = float(HABITUATION[i]), float(RISK[j])
                rewards[s, message] += chance * steps_of(h, message, fits) / MOST
                h, d = after_message(h, d, message, fits, kind)
                for (ni, p), (nj, q) in itertools.product(_near(h, HABITUATION), _risks(d)):
                    if nj < 0:
                        rows.append((s, message, LEFT, chance * p * q))
                        continue
                    for other in range(len(CONTEXTS)):
                        n = int(np.ravel_multi_index((other, ni, nj), SHAPE))
                        rows.append((s, message, n, chance * p * q / len(CONTEXTS)))
    start = np.zeros(LEFT + 1)
    start[[int(np.ravel_multi_index((seen, 0, 0), SHAPE)) for seen in (0, 1)]] = 0.5
    names = [
        f"{context}, used to it {h:.2f}, risk {d:.2f}"
        for context, h, d in itertools.product(CONTEXTS, HABITUATION, RISK)
    ]
    return TabularMDP(
        np.array(rows),
        rewards,
        integer(horizon, "horizon", low=1),
        start,
        rewards="bernoulli",
        terminal=[LEFT],
        labels={"states": [*names, "quit"], "actions": MESSAGES},
        coordinates=[*itertools.product(range(len(CONTEXTS)), HABITUATION, RISK), QUITTER],
        name="coach",
        parameters={"horizon": horizon, "uncertainty": wrong, "habituation": habituation},
    )


def _near(value: float, grid: Array) -> list[tuple[int, float]]:
    """The two cells around a value, with chances that keep its mean."""
    place = float(np.interp(value, grid, np.arange(len(grid))))
    low = min(int(place), len(grid) - 2)
    share = place - low
    return [(cell, p) for cell, p in ((low, 1.0 - share), (low + 1, share)) if p > 1e-12]


def _risks(value: float) -> list[tuple[int, float]]:
    """The same for the risk, beyond whose grid a person quits (-1)."""
    if value <= RISK[-1]:
        return _near(value, RISK)
    share = min(1.0, (value - float(RISK[-1])) / (QUIT - float(RISK[-1])))
    return [(c, p) for c, p in ((len(RISK) - 1, 1.0 - share), (-1, share)) if p > 1e-12]


class CoachEnv(gymnasium.Env[np.int64, np.int64]):
    """People of several kinds, between the cells: what the app sees is the nearest cell.

    A person who comes back (``reset(options={"return": True})``) is as used to messages as before,
    and the risk of quitting is forgotten. Rewards are steps / 250; a day that was not recorded
    pays nothing, and ``info["missing"]`` says so.

    Args:
        horizon: days.
        uncertainty: of the classifier.
        missing: share of the days whose steps are not recorded.
    """

    def __init__(self, horizon: int = DAYS, uncertainty: float = 0.2, missing: float = 0.0) -> None:
        self.horizon = integer(horizon, "horizon", low=1)
        self.uncertainty = number(uncertainty, "uncertainty", low=0.0, high=0.5)
        self.missing = number(missing, "missing", low=0.0, high=1.0)
        self.observation_space = gymnasium.spaces.Discrete(LEFT + 1)
        self.action_space = gymnasium.spaces.Discrete(len(MESSAGES))
        self._kind, self._h, self._d, self._day, self._gone = KINDS[0], 0.0, 0.0, self.horizon, True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """A new person, or the same one again."""
        super().reset(seed=seed)
        if not (options or {}).get("return", False):
            shares = [kind.share for kind in KINDS]
            self._kind = KINDS[int(self.np_random.choice(len(KINDS), p=shares))]
            self._h = 0.0
        self._d, self._day, self._gone = 0.0, 0, False
        return self._wake(), {"step": 0}

    def step(self, action: np.int64 | int) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """One day."""
        message = integer(action, "action", low=0, high=len(MESSAGES) - 1)
        if self._day >= self.horizon or self._gone:
            raise ResetNeeded("the episode is over or has not begun: call reset() before step()")
        fits = message in (1, 2 + self._context)
        reward = steps_of(self._h, message, fits) / MOST
        self._h, self._d = after_message(self._h, self._d, message, fits, self._kind)
        self._day += 1
        self._gone = self._d >= QUIT
        lost = bool(self.np_random.random() < self.missing)
        info = {"step": self._day, "missing": lost}
        over = self._day == self.horizon
        return self._wake(), 0.0 if lost else reward, self._gone, over, info

    def _wake(self) -> np.int64:
        """The context of the day, and what the app sees of it all."""
        self._context = int(self.np_random.integers(len(CONTEXTS)))
        mistaken = self.np_random.random() < self.uncertainty
        if self._gone:
            return np.int64(LEFT)
        seen = 1 - self._context if mistaken else self._context
        place = [np.abs(HABITUATION - self._h).argmin(), np.abs(RISK - self._d).argmin()]
        return np.int64(np.ravel_multi_index((seen, *map(int, place)), SHAPE))


def fixed_messages(problem: TabularMDP) -> dict[str, Array]:
    """Policies that never think [H, S, A]: the same message every day, or the one for the day."""
    H, S, A = problem.horizon, problem.states, problem.actions
    context = np.arange(S) // (len(HABITUATION) * len(RISK))
    fitting = np.where(context == 0, 2, 3)
    always = {name: np.full(S, a) for a, name in enumerate(MESSAGES)}
    return {
        name: np.broadcast_to(np.eye(A)[table], (H, S, A))
        for name, table in {**always, "for the day": fitting}.items()
    }


gymnasium.register("tacit/coach-people-v0", entry_point=f"{__name__}:CoachEnv")
