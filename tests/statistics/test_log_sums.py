"""What one person moves in sums over a log: against hand-written counts and random lives."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logs.worlds import garnet, mapping
from tacit.errors import InvalidInput
from tacit.logs.mapping import make_mapping
from tacit.logs.rows import arranged
from tacit.statistics.base import Relation
from tacit.statistics.log_sums import LoggedOutcomes, LoggedStages, LoggedVisits, WeightedReturns
from tacit.trajectory import Log

STATES, ACTIONS, HORIZON = 4, 2, 5


def small(ends: bool = False):
    columns = {"person": "p", "episode": "e", "step": "t", "reward": "r", "propensity": "c"}
    if ends:
        columns["ends"] = "d"
    return make_mapping(
        {
            "data": {"name": "small", "people": 50},
            "columns": columns,
            "state": [{"column": "s", "size": STATES}],
            "action": {"column": "a", "size": ACTIONS},
            "task": {"horizon": HORIZON},
            "reward": {"range": [-0.5, 1.0]} if ends else {},
        }
    )


def life(rng: np.random.Generator, extreme: bool) -> dict[str, np.ndarray]:
    """Rows of one person, in disorder and with nonsense in them."""
    rows = int(rng.integers(0, 40))
    reward = rng.integers(0, 2, rows) if extreme else rng.random(rows)
    return {
        "episode": rng.integers(0, 6, rows),
        "step": rng.integers(-1, HORIZON + 3, rows),
        "state": rng.integers(-1, STATES + 1, rows),
        "action": rng.integers(-1, ACTIONS + 1, rows),
        "reward": reward.astype(np.float32),
        "chance": rng.choice([0.0, 0.1, 0.5, 1.0], rows).astype(np.float32),
        "ends": (rng.random(rows) < 0.1).astype(np.int8),
    }


def log_of(lives, mapped):
    parts = {name: np.concatenate([one[name] for one in lives]) for name in lives[0]}
    if "ends" not in mapped.columns:
        del parts["ends"]
    parts["person"] = np.repeat(np.arange(len(lives)), [len(one["step"]) for one in lives])
    for name, kind in (("state", np.int16), ("action", np.int8), ("step", np.int16)):
        parts[name] = parts[name].astype(kind)
    return arranged(parts, mapped).log


def summed(statistic, log):
    out = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.add(log, out)
    return out * statistic.layout.units


def statistics(mapped):
    task = mapped.task
    rng = np.random.default_rng(0)
    S = task.sizes["states"]
    policy = rng.dirichlet(np.ones(ACTIONS), size=(HORIZON, S))
    return {
        "visits": LoggedVisits(task, 3, mapped.max_return),
        "all visits": LoggedVisits(task, 100, mapped.max_return),
        "stages": LoggedStages(task, mapped.max_return),
        "outcomes": LoggedOutcomes(task, 2, mapped.max_return),
        "all outcomes": LoggedOutcomes(task, 100, mapped.max_return),
        "weights": WeightedReturns(task, policy, 3.0, mapped.max_return),
    }


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("kind", list(statistics(small())))
def test_no_two_lives_are_farther_apart_than_the_declared_bound(kind, ends) -> None:
    mapped = small(ends)
    statistic = statistics(mapped)[kind]
    rng = np.random.default_rng(3)
    bounds = {norm: statistic.sensitivity(norm, Relation.REPLACE_ONE) for norm in ("l1", "l2")}
    alone = {norm: statistic.sensitivity(norm, Relation.ADD_REMOVE_ONE) for norm in ("l1", "l2")}
    largest, order = 0.0, {"l1": 1, "l2": 2}
    for trial in range(400):
        pair = [life(rng, extreme=trial % 2 == 0) for _ in range(2)]
        while not all(len(one["step"]) for one in pair):
            pair = [life(rng, extreme=True) for _ in range(2)]
        one, two = (summed(statistic, log_of([each], mapped)) for each in pair)
        for norm, power in order.items():
            assert np.linalg.norm(two - one, power) <= bounds[norm] * (1 + 1e-6) + 1e-4
            assert np.linalg.norm(one, power) <= alone[norm] * (1 + 1e-6) + 1e-4
        largest = max(largest, float(np.linalg.norm(two - one)) / bounds["l2"])
    if kind != "weights":  # hardly a random episode is recorded from its first step to its end
        assert largest > 0.5, "random lives come near the bound, or it is far too large"


def garbage(rng: np.random.Generator) -> Log:
    """Rows of one person as nobody arranged them: any step, state, action and reward."""
    rows = int(rng.integers(0, 40))

    def some(low: int, high: int) -> np.ndarray:
        column = rng.integers(low, high + 1, rows)
        return column if rng.random() < 0.6 else np.full(rows, rng.integers(0, high))

    step = np.arange(rows) if rng.random() < 0.3 else some(-2, HORIZON + 2)
    odd = [np.nan, np.inf, -np.inf, -3.0, 1e300, 0.0, 0.5, 1.0]
    reward, chance = (rng.choice(odd, rows) for _ in range(2))
    state, action, after = some(-2, STATES + 2), some(-2, ACTIONS + 2), some(-2, STATES + 2)
    if rng.random() < 0.3:
        reward, chance = np.full(rows, float(rng.random() < 0.5)), np.full(rows, 0.3)
    return Log(np.array([0, rows]), some(0, 1), step, state, action, reward, after, chance)


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("kind", list(statistics(small())))
def test_the_bound_holds_for_rows_that_nobody_arranged(kind, ends) -> None:
    statistic, rng = statistics(small(ends))[kind], np.random.default_rng(4)
    sums = [summed(statistic, garbage(rng)) for _ in range(300)]
    assert max(float(np.abs(one).max()) for one in sums) > 0.5
    for norm, power in (("l1", 1), ("l2", 2)):
        bound = statistic.sensitivity(norm, Relation.REPLACE_ONE)
        for one, two in zip(sums, sums[1:], strict=False):
            assert np.linalg.norm(two - one, power) <= bound * (1 + 1e-6) + 1e-4


def test_a_person_moves_the_sums_by_their_own_contribution_only() -> None:
    mapped, rng = small(), np.random.default_rng(5)
    for statistic in statistics(mapped).values():
        lives = [life(rng, extreme=False) for _ in range(6)]
        lives = [one for one in lives if len(one["step"])]
        together = summed(statistic, log_of(lives, mapped))
        apart = sum(summed(statistic, log_of([one], mapped)) for one in lives)
        assert np.allclose(together, apart, atol=1e-6)


@pytest.mark.parametrize("kind", list(statistics(small())))
def test_the_worst_pair_attains_the_bound_and_no_scale_of_blocks_hides_it(kind: str) -> None:
    """With all blocks, without each of them, and with each of them alone."""
    statistic = statistics(small())[kind]
    one, two = (summed(statistic, log) for log in statistic.worst_pair())
    blocks = statistic.layout.blocks
    names = [block.name for block in blocks]
    scales = [dict.fromkeys(names, 1.0)]
    scales += [{name: float(name != left) for name in names} for left in names]
    scales += [{name: float(name == alone) for name in names} for alone in names]
    for scale in scales:
        weights = np.concatenate([np.full(block.size, scale[block.name]) for block in blocks])
        for norm, power in (("l1", 1), ("l2", 2)):
            bound = statistic.sensitivity(norm, Relation.REPLACE_ONE, scale)
            moved = np.linalg.norm((two - one) * weights, power)
            assert moved <= bound * (1 + 1e-6) + 1e-4
            if norm == "l2" and all(scale.values()):
                assert moved == pytest.approx(bound, rel=1e-5)


def test_the_worst_pair_of_first_visits_attains_the_bound() -> None:
    """Two lives through the same pairs, to other states with other rewards and starts."""
    mapped = small()
    statistic = LoggedVisits(mapped.task, 3, mapped.max_return)

    def trip(states, reward):
        n = len(states)
        filled = {"episode": np.zeros(n), "step": np.arange(n), "state": np.array(states)}
        filled |= {"action": np.zeros(n), "reward": np.full(n, reward, dtype=np.float32)}
        return filled | {"chance": np.ones(n, dtype=np.float32), "ends": np.zeros(n, np.int8)}

    one, two = trip([0, 1, 2, 0, 1, 2], 1.0), trip([2, 1, 0, 2, 1, 0], 0.0)
    apart = summed(statistic, log_of([one], mapped)) - summed(statistic, log_of([two], mapped))
    views = statistic.layout.views(apart)
    counted = sum(float((views[name] ** 2).sum()) for name in views if name != "returns")
    assert counted == pytest.approx(3 * 3 + 2)
    bound = statistic.sensitivity("l2", Relation.REPLACE_ONE) ** 2
    assert bound == pytest.approx(3 * 3 + 3 / 2 + 4), "choices in 3 states, returns"


def test_choices_attain_their_part_of_the_bound() -> None:
    """The same states under other actions: no pair in common."""
    mapped = small()
    statistic, sums = LoggedVisits(mapped.task, 3, mapped.max_return), []
    for action in (0, 1):
        rows = {"episode": np.zeros(4), "step": np.arange(4), "state": np.array([0, 1, 2, 0])}
        rows |= {"action": np.full(4, action), "reward": np.ones(4, dtype=np.float32)}
        rows |= {"chance": np.ones(4, dtype=np.float32), "ends": np.zeros(4)}
        sums.append(summed(statistic, log_of([rows], mapped)))
    apart = statistic.layout.views(sums[1] - sums[0])
    assert float((apart["choices"] ** 2).sum()) == pytest.approx(3 / 2)


def test_weighted_returns_attain_their_bound() -> None:
    mapped = small()
    policy = np.eye(ACTIONS)[np.zeros((HORIZON, STATES), dtype=np.int64)]
    statistic = WeightedReturns(mapped.task, policy, 2.0, mapped.max_return)
    sums = []
    for reward in (1.0, 0.0, 0.5):
        n = HORIZON
        rows = {"episode": np.zeros(n), "step": np.arange(n), "state": np.zeros(n)}
        rows |= {"action": np.zeros(n), "reward": np.full(n, reward, dtype=np.float32)}
        rows |= {"chance": np.full(n, 0.5, dtype=np.float32), "ends": np.zeros(n)}
        sums.append(summed(statistic, log_of([rows], mapped)))
    assert np.allclose(sums, [[1, 1, 0, 1, 0], [1, 0, 1, 0, 1], [1, 0.5, 0.5, 0.25, 0.25]])
    bound = statistic.sensitivity("l2", Relation.REPLACE_ONE)
    assert np.linalg.norm(sums[1] - sums[0]) == pytest.approx(bound)


@pytest.mark.parametrize("short", [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_a_policy_of_another_shape_is_not_weighed(short: tuple[int, int, int]) -> None:
    """Whole episodes are those of the task: compiled code would read beyond a shorter policy."""
    policy = np.full(np.subtract((HORIZON, STATES, ACTIONS), short), 0.5)
    with pytest.raises(InvalidInput, match="cannot be weighed against a log"):
        WeightedReturns(small().task, policy, 2.0, 5.0)


def test_tiny_chances_do_not_make_infinite_weights() -> None:
    mapped = small()
    policy = np.eye(ACTIONS)[np.zeros((HORIZON, STATES), dtype=np.int64)]
    statistic = WeightedReturns(mapped.task, policy, 2.0, mapped.max_return)
    n = HORIZON
    for last, expected in ((0, 1.0), (1, 0.0)):
        action = np.append(np.zeros(n - 1), last)
        rows = {"episode": np.zeros(n), "step": np.arange(n), "state": np.zeros(n)}
        rows |= {"action": action, "reward": np.ones(n, dtype=np.float32), "ends": np.zeros(n)}
        rows["chance"] = np.full(n, 1e-45, dtype=np.float32)
        assert summed(statistic, log_of([rows], mapped))[1] == pytest.approx(expected)


def test_first_visits_are_those_that_a_person_would_count_by_hand() -> None:
    mapped, rng = small(), np.random.default_rng(8)
    statistic = LoggedVisits(mapped.task, 3, mapped.max_return)
    for _ in range(200):
        rows = life(rng, extreme=False)
        if not len(rows["step"]):
            continue
        views = statistic.layout.views(summed(statistic, log_of([rows], mapped)))
        seen, met, expected = set(), set(), np.zeros_like(views["transitions"])
        censored, choices = (np.zeros(len(expected)) for _ in range(2))
        order = sorted(
            range(len(rows["step"])), key=lambda i: (rows["episode"][i], rows["step"][i], i)
        )
        for i in order:
            e, t, s, a = (rows[name][i] for name in ("episode", "step", "state", "action"))
            if not (0 <= t < HORIZON and 0 <= s < STATES and 0 <= a < ACTIONS):
                continue
            at = {
                step: next(
                    (
                        j
                        for j in order
                        if rows["episode"][j] == e
                        and rows["step"][j] == step
                        and 0 <= rows["state"][j] < STATES
                    ),
                    None,
                )
                for step in (t, t + 1)
            }
            if at[t] != i:
                continue
            x = mapped.task.pairs.number[s, a]
            if s not in met and len(met) < 3:
                met.add(s)
                choices[x] += 0.5
            if (s, a) in seen or len(seen) == 3:
                continue
            seen.add((s, a))
            if at[t + 1] is None:
                censored[x] += 1
            else:
                expected[x, rows["state"][at[t + 1]]] += 1
        assert np.array_equal(views["transitions"], expected)
        assert np.array_equal(views["censored"], censored)
        assert np.array_equal(views["choices"], choices)
        assert np.allclose(views["totals"], (expected.sum(axis=1) + censored) / 2)


@pytest.mark.parametrize("kind", ["visits", "stages"])
def test_whether_a_row_counts_does_not_depend_on_what_comes_after_it(kind) -> None:
    mapped, rng = small(ends=True), np.random.default_rng(9)
    statistic, differed = statistics(mapped)[kind], 0
    for _ in range(300):
        rows = life(rng, extreme=False)
        order = np.lexsort((rows["step"], rows["episode"]))
        if not len(order):
            continue
        k = int(rng.integers(1, len(order) + 1))
        cut = {name: column[order][:k].copy() for name, column in rows.items()}
        cut["ends"][-1] = 0
        quit = {name: column.copy() for name, column in cut.items()}
        quit["ends"][-1] = 1
        stays, ended = (
            statistic.layout.views(summed(statistic, log_of([one], mapped))) for one in (cut, quit)
        )
        for name in stays.keys() - {"transitions", "censored", "whole", "returns"}:
            assert np.array_equal(stays[name], ended[name]), name
        of = [np.sum(one["transitions"], axis=-1) + one["censored"] for one in (stays, ended)]
        assert np.array_equal(*of)
        differed += not np.array_equal(stays["transitions"], ended["transitions"])
    assert differed > 5


def test_a_row_without_a_reward_teaches_nothing_but_how_people_choose() -> None:
    mapped = small()
    rows = {"episode": np.zeros(3), "step": np.arange(3), "state": np.array([0, 1, 2])}
    rows |= {"action": np.zeros(3), "chance": np.ones(3, dtype=np.float32), "ends": np.zeros(3)}
    rows["reward"] = np.array([1.0, np.nan, 1.0], dtype=np.float32)
    for kind in ("visits", "stages"):
        statistic = statistics(mapped)[kind]
        views = statistic.layout.views(summed(statistic, log_of([rows], mapped)))
        assert views["totals"].sum() == 1.0 and views["gains"].sum() == 1.0
    assert views["whole"].sum() == 0.0 and not views["returns"].any()


def test_only_episodes_from_their_first_step_to_their_end_are_whole() -> None:
    mapped = small(ends=True)
    statistic = statistics(mapped)["visits"]

    def counted(step, ends=-1, missing=-1):
        n = len(step)
        rows = {"episode": np.zeros(n), "step": np.array(step), "state": np.zeros(n)}
        rows |= {"action": np.zeros(n), "chance": np.ones(n, dtype=np.float32)}
        rows["ends"] = (np.arange(n) == ends).astype(np.int8)
        rows["reward"] = np.where(np.arange(n) == missing, np.nan, 1.0).astype(np.float32)
        return statistic.layout.views(summed(statistic, log_of([rows], mapped)))["whole"][0]

    assert counted(range(HORIZON)) == counted(range(HORIZON + 3)) == counted([0, 1, 2], 2) == 1
    assert counted(range(HORIZON - 1)) == counted([1, 2], 1) == counted([0, 2], 1) == 0
    assert counted(range(HORIZON), missing=1) == 0


def test_noise_does_not_grow_with_episodes_or_horizon() -> None:
    problem = garnet()
    task = mapping(problem).task
    assert LoggedVisits(task, 5, 1.0).sensitivity("l2", Relation.REPLACE_ONE) == np.sqrt(21.5)
    assert LoggedOutcomes(task, 5, 1.0).sensitivity("l2", Relation.REPLACE_ONE) == np.sqrt(7)


@pytest.mark.parametrize("first", [1.0, 1e-5])
def test_a_chance_of_almost_nothing_moves_the_sums_by_no_more_than_declared(first) -> None:
    """0 times an infinite ratio is no number: one person must not move 100,000 by it."""
    mapped = small()
    policy = np.zeros((HORIZON, STATES, ACTIONS))
    policy[0, :, 1], policy[1:, :, 0] = 1.0, 1.0
    statistic = WeightedReturns(mapped.task, policy, 50.0, mapped.max_return)
    people, H = 100_000, HORIZON
    rows = people * H
    zeros = np.zeros(rows, dtype=np.int64)
    opens, step = (np.arange(rows) % H == 0).astype(np.int8), np.arange(rows) % H
    chance = np.where(step == 0, 1.0, 1e-5)
    columns = zeros.copy(), np.where(step == 0, 1, 0), np.ones(rows), zeros - 1, chance
    log = Log(np.arange(people + 1) * H, opens, step, *columns)
    before = summed(statistic, log)
    log.action[0], log.chance[0], log.chance[1] = 0, first, 5e-324  # never chosen; then 1 / 5e-324
    moved = summed(statistic, log) - before
    assert np.abs(moved).max() <= 2 and (moved**2).sum() <= 4
    assert (moved == [0, -1, 0, -1, 0]).all()


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 10**6)] * 2), min_size=HORIZON, max_size=HORIZON))
@example([(6, 0), (0, 9), (4, 0), (0, 0), (0, 0)])  # .2, of a product that passes 1e308 before
def test_no_weight_is_above_its_true_one(factors) -> None:
    """Against exact fractions, with factors as small and as large as floats have them."""
    some = [1.0, 0.5, 0.0, 1e-8, 1e-124, 1e-150, 1e-200, 1e-300, 2.2e-308, 5e-324]
    mapped, rows = small(), np.arange(HORIZON)
    chosen, chance = (np.array([some[pair[k] % len(some)] for pair in factors]) for k in (0, 1))
    policy = np.zeros((HORIZON, STATES, ACTIONS))
    policy[:, 0, 0] = chosen
    statistic = WeightedReturns(mapped.task, policy, 50.0, mapped.max_return)
    none = np.zeros(HORIZON, dtype=np.int64)
    log = Log(np.array([0, HORIZON]), 1 * (rows == 0), rows, none, none, none, none - 1, chance)
    counted = Fraction(float(summed(statistic, log)[2])) * 50  # nothing is earned: b = w / W
    true = Fraction(0) if (chance == 0.0).any() else Fraction(1)
    for p, c in zip(chosen.tolist(), chance.tolist(), strict=True):
        true *= Fraction(p) / Fraction(c) if c else 1
    assert counted <= true * (1 + Fraction(1, 10**12))
    if Fraction(1, 10**5) < true and (chance > 1e-140).all() and (chosen > 1e-140).all():
        assert counted >= min(true, Fraction(50)) * (1 - Fraction(1, 10**4)) - Fraction(1, 10**5)
