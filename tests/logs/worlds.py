"""Tables on which constants may be chosen, and mappings for logs of them."""

from pathlib import Path

import numpy as np

from tacit.logs.mapping import LogMapping, make_mapping
from tacit.policies.tabular import StochasticPolicy, uniform_policy
from tacit.problems import TabularMDP
from tacit.trajectory import Log


def chain(states: int = 8, horizon: int = 12, slip: float = 0.1) -> TabularMDP:
    P, R = np.zeros((states, 2, states)), np.zeros((states, 2))
    for s in range(states):
        up, down = min(s + 1, states - 1), max(s - 1, 0)
        for a, (to, other) in enumerate(((down, up), (up, down))):
            P[s, a, to] += 1 - slip
            P[s, a, other] += slip
    R[0, 0], R[-1, 1] = 0.05, 1.0
    return TabularMDP(P, R, horizon, 0, rewards="bernoulli", name="chain")


def garnet(states: int = 20, actions: int = 3, seed: int = 0, horizon: int = 10) -> TabularMDP:
    rng = np.random.default_rng(seed)
    P = np.zeros((states, actions, states))
    for s in range(states):
        for a in range(actions):
            P[s, a, rng.choice(states, 3, replace=False)] = rng.dirichlet(np.ones(3))
    R = np.where(rng.random((states, actions)) < 0.3, rng.random((states, actions)), 0.0)
    start = rng.dirichlet(np.ones(states))
    return TabularMDP(P, R, horizon, start, rewards="bernoulli", name="garnet")


def inventory(most: int = 10, horizon: int = 12) -> TabularMDP:
    P, R = np.zeros((most + 1, 4, most + 1)), np.zeros((most + 1, 4))
    for s in range(most + 1):
        for a in range(4):
            stock = min(s + 2 * a, most)
            for wanted, chance in enumerate((0.2, 0.3, 0.3, 0.2)):
                sold = min(stock, wanted)
                P[s, a, stock - sold] += chance
                R[s, a] += chance * sold / 3
            R[s, a] = np.clip(R[s, a] - 0.02 * stock - 0.03 * a + 0.2, 0.0, 1.0)
    return TabularMDP(P, R, horizon, 0, rewards="bernoulli", name="inventory")


def queue(places: int = 8, horizon: int = 15) -> TabularMDP:
    P, R = np.zeros((places + 1, 3, places + 1)), np.zeros((places + 1, 3))
    for s in range(places + 1):
        for a, served in enumerate((0.2, 0.5, 0.8)):
            up = 0.45 * (1 - served) if s else 0.45
            down = 0.55 * served if s else 0.0
            P[s, a, min(s + 1, places)] += up
            P[s, a, max(s - 1, 0)] += down
            P[s, a, s] += 1 - up - down
            R[s, a] = max(0.0, 1 - s / places - 0.2 * a)
    return TabularMDP(P, R, horizon, 3, rewards="bernoulli", name="queue")


def survival(
    states: int = 250, seed: int = 1, horizon: int = 20, **declared: object
) -> tuple[TabularMDP, int]:
    """A large sparse table with two ends, one of which pays 1; and the number of that state."""
    rng = np.random.default_rng(seed)
    actions, rows = 6, []
    allowed = [list(rng.choice(actions, k, replace=False)) for k in rng.integers(1, 7, states)]
    base, R = rng.normal(0, 0.8, states), np.zeros((states + 2, actions))
    for s in range(states):
        near = rng.choice(states, 16, replace=False)
        for a in allowed[s]:
            good = base[s] + rng.normal(0, 0.35)
            live, die = min(0.07 * np.exp(good), 0.5), min(0.04 * np.exp(-good), 0.4)
            on = rng.dirichlet(np.ones(8)) * (1 - live - die)
            rows += [
                (s, a, n, p) for n, p in zip(rng.choice(near, 8, replace=False), on, strict=True)
            ]
            rows += [(s, a, states, live), (s, a, states + 1, die)]
            R[s, a] = live
    start = np.append(rng.dirichlet(0.3 * np.ones(states)), [0.0, 0.0])
    ends = [states, states + 1]
    allowed += [[], []]
    table = TabularMDP(
        np.array(rows), R, horizon, start, terminal=ends, allowed=allowed, **declared
    )
    return table, states


def mapping(problem: TabularMDP, people: int = 1_000_000, **more: object) -> LogMapping:
    """A mapping of logs that ``write_log`` writes."""
    ends = np.flatnonzero(np.diff(problem.pairs.first) == 0).tolist()
    allowed = [np.flatnonzero(row >= 0).tolist() for row in problem.pairs.number]
    names = ("person", "step", "reward", "propensity")
    return make_mapping(
        {
            "data": {"name": "made up", "people": people},
            "budget": {"epsilon": 4.0, "delta": 1e-5},
            "columns": {name: name for name in names},
            "state": [{"column": "state", "size": problem.states}],
            "action": {"column": "action", "size": problem.actions},
            "task": {"horizon": problem.horizon, "terminal": ends, "allowed": allowed},
            "reward": more,
        }
    )


def uniform(problem: TabularMDP) -> StochasticPolicy:
    return uniform_policy(problem.horizon, problem.states, problem.actions, problem.pairs)


def towards_best(problem: TabularMDP, share: float = 0.7) -> StochasticPolicy:
    """The best actions with that chance, else any."""
    Q = np.where(np.isfinite(problem.optimal_q()), problem.optimal_q(), -1.0)
    best = np.eye(problem.actions)[Q.argmax(axis=2)]
    return StochasticPolicy(share * best + (1 - share) * uniform(problem).probabilities)


def rows_of(log: Log, ended: int = -1) -> dict[str, np.ndarray]:
    """The columns of a made-up log as they are read from a file, before they are arranged.

    Next states are not in them; a row that leads to the state ``ended`` ends its episode.
    """
    return {
        "person": np.repeat(np.arange(log.people), np.diff(log.begin)),
        "step": log.step.copy(),
        "state": log.state.copy(),
        "action": log.action.copy(),
        "reward": log.reward.copy(),
        "chance": log.chance.copy(),
        "ends": (log.after == ended).astype(np.int8),
    }


def write_log(log: Log, path: str | Path) -> Path:
    """Write a made-up log as a file that a mapping can read; the ending chooses CSV or parquet.

    Columns are person, step, state, action, reward and propensity; the state that an episode led to
    has a row without an action.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    target, rows = Path(path), np.arange(len(log.state))
    ends = np.append(log.opens[1:] != 0, True)
    place = np.sort(np.concatenate([rows, rows[ends]]), kind="stable")
    last = np.append(place[1:] != place[:-1], True) & ends[place]
    person = np.repeat(np.arange(log.people), np.diff(log.begin))
    table = pa.table(
        {
            "person": person[place],
            "step": log.step[place] + last,
            "state": np.where(last, log.after[place], log.state[place]),
            "action": pa.array(log.action[place], mask=last),
            "reward": pa.array(log.reward[place], mask=last),
            "propensity": pa.array(log.chance[place], mask=last),
        }
    )
    if target.suffix == ".csv":
        pyarrow.csv.write_csv(table, target)
    else:
        pyarrow.parquet.write_table(table, target)
    return target
