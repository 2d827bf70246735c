"""Scores and rules of guessing: what they count, and whether the right ones are found."""

import math

import numpy as np
import pytest

from tacit.auditing import scores
from tacit.auditing.bounds import epsilon_from_guesses
from tacit.auditing.scores import (
    RIDGES,
    AuditScore,
    GuessingRule,
    learned_scores,
    likeliest_rule,
    strongest_rule,
)
from tacit.errors import InvalidInput

FIRST = AuditScore("x", lambda outputs: outputs[:, 0])


def column(*values: float) -> np.ndarray:
    return np.array(values)[:, None]


def halves(rng: np.random.Generator, trials: int) -> np.ndarray:
    return rng.integers(2, size=trials)


# ---- rules ----


def test_a_rule_counts_right_guesses_and_all_guesses() -> None:
    outputs = column(0.0, 1.0, 2.0, 3.0, 4.0, 5.0)
    worlds = np.array([0, 1, 0, 1, 1, 0])
    assert GuessingRule(FIRST, 1.0, 4.0).count(outputs, worlds) == (
        2,
        4,
    )  # 0 and 4 right, 1 and 5 wrong
    assert GuessingRule(FIRST, -math.inf, 4.0).count(outputs, worlds) == (1, 2)
    assert GuessingRule(FIRST, 1.0, math.inf).count(outputs, worlds) == (1, 2)
    assert GuessingRule(FIRST, -math.inf, math.inf).count(outputs, worlds) == (0, 0)
    assert GuessingRule(FIRST, 2.0, 2.0).count(outputs, worlds) == (
        3,
        6,
    )  # at a tie, world 1 is guessed


def test_scores_may_be_infinite() -> None:
    outputs, worlds = column(-math.inf, math.inf, math.inf), np.array([0, 1, 0])
    assert GuessingRule(FIRST, -5.0, 5.0).count(outputs, worlds) == (2, 3)


def test_rules_are_printed_as_they_guess() -> None:
    assert str(GuessingRule(FIRST, -1.0, 2.5)) == "x >= 2.5 or <= -1"
    assert str(GuessingRule(FIRST, -math.inf, 2.5)) == "x >= 2.5"
    assert str(GuessingRule(FIRST, -1.0, math.inf)) == "x <= -1"
    assert str(GuessingRule(FIRST, -math.inf, math.inf)) == "x never"


def test_the_strongest_rule_separates_what_can_be_separated() -> None:
    worlds = np.array([0, 1] * 200)
    outputs = column(*(10.0 * worlds + np.arange(400) / 1000))
    rule = strongest_rule([FIRST], outputs, worlds, 0.0, 0.05)
    assert rule.count(outputs, worlds) == (400, 400)


def test_one_telling_end_is_enough() -> None:
    """A value that only one of the worlds has, now and then; all else is the same."""
    rng = np.random.default_rng(0)
    worlds = halves(rng, 20_000)
    told = rng.random(20_000) < 0.02
    for sign in (1.0, -1.0):
        world = 1 if sign > 0 else 0
        outputs = column(*np.where(told & (worlds == world), sign * 9.0, rng.normal(size=20_000)))
        rule = strongest_rule([FIRST], outputs, worlds, 0.0, 0.05)
        assert (rule.high, rule.low) == ((9.0, -math.inf) if sign > 0 else (math.inf, -9.0))
        correct, made = rule.count(outputs, worlds)
        assert correct == made == np.count_nonzero(told & (worlds == world))


def test_two_telling_ends_are_used_together() -> None:
    """Laplace noise: beyond either of the two centres every guess is as good as any."""
    rng = np.random.default_rng(1)
    worlds = halves(rng, 200_000)
    outputs = column(*(worlds + rng.laplace(size=200_000)))
    rule = strongest_rule([FIRST], outputs, worlds, 0.0, 0.05)
    assert rule.low == pytest.approx(0.0, abs=0.3) and rule.high == pytest.approx(1.0, abs=0.3)


def test_with_delta_a_rule_must_not_guess_too_seldom() -> None:
    """The rare end tells everything, the other one something: which is used depends on delta."""
    rng = np.random.default_rng(2)
    trials, worlds = 100_000, halves(rng, 100_000)
    right = rng.random(trials) < math.e / (1 + math.e)
    response = np.where(right, worlds, 1 - worlds).astype(float)
    told = rng.random(trials) < 0.002
    outputs = column(*np.where(told & (worlds == 1), 7.0, response))
    pure = strongest_rule([FIRST], outputs, worlds, 0.0, 0.05)
    assert pure.high == 7.0 and pure.low == -math.inf
    lenient = strongest_rule([FIRST], outputs, worlds, 0.01, 0.05)
    assert lenient.count(outputs, worlds)[1] > 0.4 * trials


def test_the_best_of_several_scores_wins() -> None:
    rng = np.random.default_rng(3)
    worlds = halves(rng, 4000)
    outputs = rng.normal(size=(4000, 3))
    outputs[:, 1] += 2.0 * worlds
    several = [AuditScore(f"{j}", lambda x, j=j: x[:, j]) for j in range(3)]
    assert strongest_rule(several, outputs, worlds, 0.0, 0.05).score.name == "1"


def test_rules_are_ranked_by_what_they_show_not_by_their_luck() -> None:
    """On pure noise the luckiest rule is right every time it guesses, and that is not believed."""
    rng = np.random.default_rng(4)
    worlds = halves(rng, 2000)
    outputs = rng.normal(size=(2000, 40))
    several = [AuditScore(f"{j}", lambda x, j=j: x[:, j]) for j in range(40)]
    rule = strongest_rule(several, outputs, worlds, 0.0, 0.05)
    correct, made = rule.count(outputs, worlds)
    assert made > 50
    assert epsilon_from_guesses(correct, made, 2000, 0.0, 0.05 / 10_000) < 0.0


def test_thresholds_on_a_likelihood_follow_from_the_ratios_alone() -> None:
    """Few trials: guess often. Many: wait for the large ratios, which are right more often."""
    ratios = np.concatenate([np.full(9000, 0.2), np.full(900, -2.0), np.full(100, 4.0)])
    outputs = np.random.default_rng(0).permutation(ratios)[:, None]

    def threshold(trials: int, delta: float = 0.0) -> float:
        rule = likeliest_rule(FIRST, outputs, trials, delta, 0.05)
        assert rule.low == -rule.high
        return rule.high

    assert [threshold(trials) for trials in (300, 3000, 10**6)] == [2.0, 2.0, 4.0]
    assert threshold(10**6, delta=0.02) == 2.0  # what 1 percent of the trials show costs too much


def test_a_likelihood_that_is_claimed_wrongly_gives_a_rule_all_the_same() -> None:
    rule = likeliest_rule(FIRST, column(*np.full(50, math.inf)), 1000, 0.0, 0.05)
    assert rule.count(column(math.inf, 0.0), np.array([1, 1])) == (1, 1)
    nothing = likeliest_rule(FIRST, np.zeros((50, 1)), 1000, 0.0, 0.05)
    assert nothing.count(np.zeros((4, 1)), np.array([0, 1, 1, 0]))[1] == 4


# ---- learned scores ----


def names(learned: list[AuditScore]) -> list[str]:
    return [score.name for score in learned]


def test_the_coordinates_that_moved_or_stretched_come_first() -> None:
    rng = np.random.default_rng(5)
    zero, one = rng.normal(size=(2000, 20)), rng.normal(size=(2000, 20))
    one[:, 7] += 1.0
    one[:, 3] *= 4.0
    learned = learned_scores(zero, one)
    assert learned[0].name == "coordinate 7"
    stretched = next(score for score in learned if score.name.startswith("distance"))
    assert stretched.name.startswith("distance of coordinate 3 from ")
    assert stretched.of(one).mean() > 2 * stretched.of(zero).mean()


def test_scores_are_larger_in_the_second_world_whichever_that_is() -> None:
    rng = np.random.default_rng(5)
    zero, one = rng.normal(size=(2000, 3)), rng.normal(size=(2000, 3))
    one[:, 0] += 1.0
    one[:, 1] *= 4.0
    for first, second in ((zero, one), (one, zero)):
        for score in learned_scores(first, second):
            assert score.of(second).mean() >= score.of(first).mean()


def test_a_combination_whose_noise_cancels_is_found() -> None:
    """One draw in all outputs: each of them alone hides the world, a difference does not."""
    rng = np.random.default_rng(6)
    worlds = halves(rng, 3000)
    outputs = np.zeros((3000, 12)) + 100.0 * rng.laplace(size=(3000, 1))
    outputs[:, 3] += worlds
    learned = learned_scores(outputs[worlds == 0], outputs[worlds == 1])
    rule = strongest_rule(learned, outputs, worlds, 0.0, 0.05)
    assert rule.score.name == f"linear, ridge {RIDGES[0]:g}"
    correct, made = rule.count(outputs, worlds)
    assert correct == made > 2700


def test_the_linear_score_is_the_inverse_covariance_times_the_mean_difference() -> None:
    rng = np.random.default_rng(0)
    mix, gap = rng.normal(size=(4, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    worlds = [rng.normal(size=(200_000, 4)) @ mix + world * gap for world in (0, 1)]
    (score,) = [s for s in learned_scores(*worlds) if s.name == f"linear, ridge {RIDGES[0]:g}"]
    weights = score.of(np.eye(4))
    expected = np.linalg.solve(mix.T @ mix, gap)
    cosine = weights @ expected / np.linalg.norm(weights) / np.linalg.norm(expected)
    assert cosine > 0.999


def test_a_field_without_noise_has_a_scale() -> None:
    rng = np.random.default_rng(7)
    zero, one = rng.laplace(size=(500, 4)), rng.laplace(size=(500, 4))
    zero[:, 2], one[:, 2] = 17.0, 18.0
    learned = learned_scores(zero, one)
    assert learned[0].name == "coordinate 2"
    linear = next(score for score in learned if score.name.startswith("linear"))
    assert linear.of(zero).max() < linear.of(one).min()


def test_more_outputs_than_runs() -> None:
    rng = np.random.default_rng(8)
    zero, one = rng.normal(size=(100, 300)), rng.normal(size=(100, 300))
    for sample, world in ((zero, 0), (one, 1)):
        sample[:, 7] = sample[:, 9] + 3.0 * world
    fresh = [rng.normal(size=(500, 300)) for _ in (0, 1)]
    for world, sample in enumerate(fresh):
        sample[:, 7] = sample[:, 9] + 3.0 * world
    apart = []
    for score in learned_scores(zero, one):
        both = [score.of(sample) for sample in fresh]
        apart.append((both[1].mean() - both[0].mean()) / math.sqrt(both[0].var()))
    assert max(apart) > 3.0


def test_only_the_coordinates_that_moved_most_enter_a_linear_score(monkeypatch) -> None:
    monkeypatch.setattr(scores, "LINEAR", 3)
    rng = np.random.default_rng(0)
    worlds = [rng.normal(world * np.arange(6), 1.0, (500, 6)) for world in (0, 1)]
    linear = [s for s in learned_scores(*worlds) if s.name.startswith("linear")]
    assert len(linear) == len(RIDGES)
    for score in linear:
        assert np.flatnonzero(score.of(np.eye(6))).tolist() == [3, 4, 5]


def test_constant_outputs_give_scores_without_warnings() -> None:
    learned = learned_scores(np.ones((5, 3)), np.ones((7, 3)))
    assert all(np.isfinite(score.of(np.ones((4, 3)))).all() for score in learned)
    assert not any(name.startswith("linear") for name in names(learned))


def test_samples_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"\(5, 2\) and \(5, 3\)"):
        learned_scores(np.zeros((5, 2)), np.zeros((5, 3)))
    with pytest.raises(InvalidInput, match="not empty"):
        learned_scores(np.zeros((5, 2)), np.zeros((0, 2)))
