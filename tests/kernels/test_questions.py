"""Which question an id gets, how much its answer weighs: public numbers, whatever was published."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.kernels.public.questions import (
    KINDS,
    MOVE,
    OWN_VARIANCE,
    REWARD,
    STEP,
    WEIGHT_STEPS,
    Weighing,
    in_turn,
    pick_question,
    pick_questions,
    report_weight,
)

# ---- which question -----------------------------------------------------------------------------


def test_kinds_are_numbered_as_their_oracles_are():
    assert (STEP, MOVE, REWARD, KINDS) == (0, 1, 2, 3)


@pytest.mark.parametrize("H", [1, 2, 5])
def test_in_turn_every_step_has_its_turn_and_the_last_one_no_next_state(H):
    for coin in range(3 * H):
        h, kind = divmod(in_turn(coin, H), KINDS)
        assert h == coin % H and kind == (REWARD if h == H - 1 else STEP)
        assert in_turn(coin, H) == in_turn.py_func(coin, H)


shares = st.lists(st.sampled_from([0.0, 0.0, 0.01, 1.0]) | st.floats(0, 1), min_size=3, max_size=18)
starts = st.integers(0, 2**62) | st.integers(2**31 - 500, 2**31 + 5)


def discrepancy(ids: int) -> float:
    """How far a count in an interval may be off: multiples of the golden ratio leave O(log n)."""
    return 2.0 + 0.5 * math.log(ids)


@settings(max_examples=150, deadline=None)
@given(shares, starts, st.integers(1, 2000))
def test_any_run_of_consecutive_ids_is_asked_in_these_shares(share, start, ids):
    share = np.array(share) + 0.0
    if share.sum() == 0.0:
        share[0] = 1.0
    share /= share.sum()
    asked = np.cumsum(share)
    drawn = [pick_question(asked, coin) for coin in range(start, start + ids)]
    counts = np.bincount(drawn, minlength=len(share))
    assert np.abs(counts - ids * share).max() <= discrepancy(ids)
    assert np.abs(np.cumsum(counts) - ids * asked).max() <= discrepancy(ids)
    never = share == 0.0
    never[-1] = False  # what rounding leaves over
    assert not counts[never].any()


def test_shares_are_met_far_better_than_by_coins():
    """A hundred thousand ids: each of nine questions within 5, where coins would be off by 95."""
    share = np.random.default_rng(0).dirichlet(np.ones(9))
    asked = np.cumsum(share)
    drawn = [pick_question(asked, coin) for coin in range(10**5)]
    assert np.abs(np.bincount(drawn, minlength=9) - 1e5 * share).max() < 5.0


anything = st.floats(allow_nan=True, allow_infinity=True) | st.floats(-1, 2)


@settings(max_examples=200, deadline=None)
@given(st.lists(anything, min_size=3, max_size=15), st.integers(-(2**63), 2**63 - 1))
def test_whatever_is_published_the_question_exists(asked, coin):
    asked = np.array(asked)
    found = pick_question(asked, coin)
    assert 0 <= found < len(asked)
    assert found == pick_question.py_func(asked, coin)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_whatever_kind_of_number_is_published_the_question_exists(dtype):
    for row in ([0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]):
        found = {pick_question(np.array(row, dtype=dtype), coin) for coin in range(40)}
        assert found <= {0, 1, 2}


def test_ids_differ_in_their_questions_beyond_the_circle_too():
    asked = np.arange(1, 10) / 9
    here = [pick_question(asked, coin) for coin in range(60)]
    assert len(set(here)) == 9
    assert here == [pick_question(asked, coin + 2**31) for coin in range(60)]


# ---- how much an answer weighs ------------------------------------------------------------------

noises = st.floats(1e-20, 1e6)
weighings = st.tuples(noises, noises, noises, noises).map(
    lambda v: Weighing(v[:2], v[2:], OWN_VARIANCE + min(v))
)


@settings(max_examples=300, deadline=None)
@given(weighings, st.integers(1, WEIGHT_STEPS))
def test_a_report_weighs_signal_over_variance(weighing, occupancy):
    for noise in (*weighing.moves, *weighing.rewards):
        found = report_weight(occupancy, noise, weighing)
        d = occupancy / WEIGHT_STEPS
        exact = weighing.most * d / (d / 4 + noise)
        assert abs(found - max(exact * WEIGHT_STEPS, 1)) <= 0.5 + 1e-9 * WEIGHT_STEPS
        assert isinstance(found, int) and 1 <= found <= WEIGHT_STEPS
        assert found == report_weight.py_func(occupancy, noise, weighing)


def test_the_largest_weight_is_one_and_weights_rise_with_the_chance():
    weighing = Weighing((4.0, 2.0), (3.0, 1.5), OWN_VARIANCE + 1.5)
    assert report_weight(WEIGHT_STEPS, 1.5, weighing) == WEIGHT_STEPS
    assert report_weight(WEIGHT_STEPS, 2.0, weighing) == round(1.75 / 2.25 * WEIGHT_STEPS)
    rising = [report_weight(d, 1.5, weighing) for d in range(1, WEIGHT_STEPS, 50)]
    assert rising == sorted(rising) and len(set(rising)) == len(rising)


def test_without_noise_all_reports_weigh_alike():
    weighing = Weighing((1e-20, 1e-20), (1e-20, 1e-20), OWN_VARIANCE + 1e-20)
    assert {report_weight(d, 1e-20, weighing) for d in (1, 300, WEIGHT_STEPS)} == {WEIGHT_STEPS}


def test_many_ids_ask_what_each_of_them_asks():
    coins = np.random.default_rng(5).integers(0, 2**63, 200)
    shares = np.cumsum(np.random.default_rng(6).dirichlet(np.ones(12)))
    for asked, alone in [
        (shares, [pick_question(shares, coin) for coin in coins]),
        (np.zeros(0), [in_turn(coin, 4) for coin in coins]),
    ]:
        numbers = np.full(200, -1)
        pick_questions(asked, 4, coins, numbers)
        assert numbers.tolist() == alone and len(set(alone)) > 3
