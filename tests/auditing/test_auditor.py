"""The auditor audited: its confidence by simulation, its power on honest and broken mechanisms."""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from tacit.auditing import AuditReport, MethodBound, audit_target, auditor, scores
from tacit.auditing.bounds import clopper_pearson_upper, epsilon_from_rates, error_rates_upper
from tacit.auditing.scores import Score, learned_scores, strongest_events
from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_epsilon, gaussian_mu

DELTA = 1e-5


@dataclass
class Mechanism:
    """Outputs drawn by a function of (world, trials, rng)."""

    name: str
    draw: Callable[[int, int, np.random.Generator], np.ndarray]
    family: str = "unknown"
    source: str = "simulated"
    known: Callable[[np.ndarray], np.ndarray] | None = None

    def sample(self, world: int, trials: int, rng: np.random.Generator) -> np.ndarray:
        return self.draw(world, trials, rng)

    def score(self, outputs: np.ndarray) -> np.ndarray | None:
        return None if self.known is None else self.known(outputs)


def laplace(epsilon: float, outputs: int = 1) -> Mechanism:
    """Laplace noise of scale 1/epsilon; the worlds differ by 1 in the first output."""

    def draw(world, trials, rng):
        noise = rng.laplace(0.0, 1 / epsilon, (trials, outputs))
        noise[:, 0] += world
        return noise

    return Mechanism("laplace", draw)


def gaussian(mu: float, after: Callable = lambda x: x) -> Mechanism:
    """Unit Gaussian noise on two outputs whose means are mu apart, then post-processed."""

    def draw(world, trials, rng):
        return after(rng.normal(world * mu * np.array([0.6, 0.8]), 1.0, (trials, 2)))

    return Mechanism("gaussian", draw, family="gaussian")


def coin(outputs: int = 1) -> Mechanism:
    """Fair coins, whatever the world."""
    return Mechanism("coin", lambda world, trials, rng: rng.integers(0, 2, (trials, outputs)))


def audit(target, claim: float, delta: float = 0.0, trials: int = 20_000, seed: int = 0, **more):
    return audit_target(target, claim, delta, trials, rng=np.random.default_rng(seed), **more)


def pure(fpr, fnr):
    return epsilon_from_rates(fpr, fnr, 0.0)


# Confidence. Each case repeats whole audits and counts bounds above the truth. An auditor that is
# wrong in exactly 1 - confidence of its reports would fail a case with probability 1e-3.

MU = gaussian_mu(1.0, DELTA)
COVERAGE = {
    "laplace": (laplace(1.0), 0.0, 1.0),
    "laplace, many outputs": (laplace(1.0, outputs=6), 0.0, 1.0),
    "laplace at delta > 0": (laplace(1.0), DELTA, 1.0 + 2 * math.log1p(-DELTA)),
    "laplace, strong": (laplace(4.0), 0.0, 4.0),
    "gaussian": (gaussian(MU), DELTA, 1.0),
    "gaussian, strong": (gaussian(4.0), DELTA, gaussian_epsilon(4.0, DELTA)),
    "gaussian, only the sign": (gaussian(4.0, np.sign), DELTA, gaussian_epsilon(4.0, DELTA)),
    "gaussian, clipped": (
        gaussian(4.0, lambda x: np.clip(x, 1, 2)),
        DELTA,
        gaussian_epsilon(4.0, DELTA),
    ),
    "coin": (coin(), 0.0, 0.0),
    "coins": (coin(5), DELTA, 0.0),
}


@pytest.mark.parametrize(
    ("case", "confidence"),
    [*((case, 0.95) for case in COVERAGE), ("laplace", 0.8), ("gaussian", 0.8), ("coins", 0.8)],
)
def test_the_bound_exceeds_the_truth_no_more_often_than_it_may(case: str, confidence) -> None:
    target, delta, true = COVERAGE[case]
    repetitions, rng = 150, np.random.default_rng(7)
    reports = [
        audit_target(target, true, delta, 800, confidence, rng=rng) for _ in range(repetitions)
    ]
    exceeded = sum(report.lower_bound > true for report in reports)
    assert exceeded == sum(report.verdict == "violated" for report in reports)
    assert exceeded <= stats.binom.ppf(0.999, repetitions, 1 - confidence)


def test_measuring_on_the_runs_that_picked_the_event_would_be_caught_by_that_test() -> None:
    rng, exceeded = np.random.default_rng(8), 0
    for _ in range(30):
        worlds = [rng.normal(size=(800, 60)) for _ in (0, 1)]  # epsilon = 0
        (event,) = strongest_events(learned_scores(*worlds), *worlds, [pure], 0.05)
        positives = [event.count(world) for world in worlds]
        exceeded += pure(*error_rates_upper(positives[0], 800 - positives[1], 800, 0.05)) > 0.0
    assert exceeded > stats.binom.ppf(0.999, 30, 0.05)


def test_the_two_methods_and_two_rates_share_the_failure_probability() -> None:
    silent = Mechanism("world itself", lambda w, n, rng: np.full((n, 1), w), family="gaussian")
    report = audit(silent, 1.0, DELTA, trials=1000)
    for bound in report.bounds:
        assert bound.fpr == bound.fnr == pytest.approx(float(clopper_pearson_upper(0, 750, 0.0125)))
    report = audit(dataclasses.replace(silent, family="unknown"), 1.0, DELTA, trials=1000)
    (bound,) = report.bounds
    assert bound.fpr == pytest.approx(float(clopper_pearson_upper(0, 750, 0.025)))


# Power.


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_tightness_and_verdicts_for_laplace(epsilon: float) -> None:
    right = audit(laplace(epsilon), epsilon, trials=40_000)
    assert 0.8 * epsilon <= right.lower_bound <= epsilon
    assert right.verdict == "consistent" and right.best.method == "threshold"
    halved = audit(laplace(2 * epsilon), epsilon, trials=40_000)
    assert halved.verdict == "violated"
    assert 0.8 * 2 * epsilon <= halved.lower_bound <= 2 * epsilon


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_tightness_and_verdicts_for_gaussian(epsilon: float) -> None:
    mu = gaussian_mu(epsilon, DELTA)
    right = audit(gaussian(mu), epsilon, DELTA, trials=100_000)
    assert 0.8 * epsilon <= right.lower_bound <= epsilon
    assert right.verdict == "consistent" and right.best.method == "gaussian"
    halved = audit(gaussian(2 * mu), epsilon, DELTA, trials=100_000)
    assert halved.verdict == "violated"
    assert halved.lower_bound >= 0.8 * gaussian_epsilon(2 * mu, DELTA)


def limit(trials: int) -> float:
    """What an infinite ratio shows: no error in three quarters of the runs, in either world."""
    rate = clopper_pearson_upper(0, trials - 2 * (trials // 8), 0.025)
    return float(pure(rate, rate))


@pytest.mark.parametrize("noise", ["laplace", "normal"])
def test_one_draw_shared_by_all_outputs_is_caught_by_the_linear_score(noise: str) -> None:
    def draw(world, trials, rng):
        outputs = np.zeros((trials, 12)) + getattr(rng, noise)(0.0, 10.0, (trials, 1))
        outputs[:, 3] += world
        return outputs

    report = audit(Mechanism("shared noise", draw), 1.0)
    assert report.verdict == "violated" and "linear" in report.best.event
    assert report.lower_bound == pytest.approx(limit(20_000), rel=1e-3)


def test_a_side_field_without_noise_is_caught_and_the_bound_grows_with_the_trials() -> None:
    def draw(world, trials, rng):
        noise = rng.laplace(0.0, 1.0, (trials, 4))
        noise[:, 2] = 17.0 + world
        return noise

    target = Mechanism("side field", draw)
    for trials in (1_000, 10_000, 100_000):
        report = audit(target, 1.0, trials=trials)
        assert report.verdict == "violated"
        assert report.lower_bound == pytest.approx(limit(trials), rel=1e-3)
        assert report.lower_bound == pytest.approx(math.log(trials / 5), abs=0.05)
    assert report.best.delta_at_claim == pytest.approx(1.0, abs=1e-3)


def test_a_side_field_that_rarely_shows_is_caught() -> None:
    def draw(world, trials, rng):
        noise = rng.laplace(0.0, 1.0, (trials, 30))
        noise[:, 5] = world * (rng.random(trials) < 0.01)
        return noise

    assert audit(Mechanism("rare", draw), 1.0, trials=50_000).verdict == "violated"


def test_noise_whose_spread_depends_on_the_data_is_caught() -> None:
    def draw(world, trials, rng):
        return rng.laplace(0.0, 1.0 + 3 * world, (trials, 3))

    report = audit(Mechanism("spread", draw), 0.5)
    assert report.verdict == "violated" and "distance" in report.best.event


def test_no_noise_at_all_in_one_of_many_combinations_with_more_outputs_than_runs() -> None:
    def draw(world, trials, rng):
        outputs = rng.normal(0.0, 1.0, (trials, 300))
        outputs[:, 7] = outputs[:, 9] + world
        return outputs

    assert audit(Mechanism("wide", draw), 1.0, trials=4_000).verdict == "violated"


def test_the_target_s_own_score_is_tried_too() -> None:
    def draw(world, trials, rng):  # only the product of two fair signs tells
        signs = rng.choice([-1.0, 1.0], (trials, 2))
        right = rng.random(trials) < 0.5 + 0.4 * world
        signs[:, 1] = signs[:, 0] * np.where(right, 1, -1)
        return signs

    blind = Mechanism("product", draw)
    knows = Mechanism("product", draw, known=lambda x: x[:, 0] * x[:, 1])
    assert audit(blind, 1.0).verdict == "consistent"
    report = audit(knows, 1.0)
    assert report.verdict == "violated" and "the target's score" in report.best.event
    infinite = Mechanism("support", draw, known=lambda x: np.where(x.prod(axis=1) > 0, 9, -np.inf))
    assert audit(infinite, 1.0).verdict == "violated"


def test_either_world_may_be_the_more_telling_one() -> None:
    for told in (0, 1):

        def draw(world, trials, rng, told=told):
            return ((world == told) & (rng.random((trials, 1)) < 0.3)).astype(float)

        assert audit(Mechanism("one-sided", draw), 2.0).verdict == "violated"


# The report.


def test_json_has_the_keys_people_script_against() -> None:
    report = audit(gaussian(MU), 1.0, DELTA)
    data = json.loads(json.dumps(report.to_json()))
    assert data == report.to_json()
    first = ["claimed_epsilon", "delta", "lower_bound", "confidence", "trials", "verdict"]
    assert list(data)[:6] == first
    assert data["method"] in {"threshold", "gaussian"} and data["source"] == "simulated"
    assert [bound["method"] for bound in data["bounds"]] == ["threshold", "gaussian"]
    assert "valid only for Gaussian noise" in data["bounds"][1]["assumption"]
    assert data["lower_bound"] == max(bound["lower_bound"] for bound in data["bounds"])


def test_the_gaussian_method_runs_only_for_declared_gaussian_noise_and_delta() -> None:
    declared = gaussian(MU)
    undeclared = dataclasses.replace(declared, family="laplace")
    assert [b.method for b in audit(undeclared, 1.0, DELTA).bounds] == ["threshold"]
    assert [b.method for b in audit(declared, 1.0, 0.0).bounds] == ["threshold"]


def test_the_words_of_the_verdict() -> None:
    consistent = audit(laplace(1.0), 1.0)
    assert consistent.verdict == "consistent" and "no guarantee" in str(consistent)
    nothing = audit(laplace(1.0), math.inf)
    assert nothing.verdict == "no claim" and nothing.to_json()["claimed_epsilon"] is None
    assert nothing.lower_bound > 0.8 and nothing.best.delta_at_claim is None
    violated = audit(laplace(1.0), 0.5)
    assert violated.verdict == "violated" and "refuted" in str(violated)
    assert "Gaussian" not in violated.meaning


def test_a_refutation_that_rests_on_an_assumption_says_so() -> None:
    free = MethodBound("threshold", 0.5, auditor.NOTHING, "", 0.1, 0.1, 0.0)
    conditional = MethodBound("gaussian", 1.5, auditor.GAUSSIAN, "", 0.1, 0.1, 0.0)
    report = AuditReport("x", "secure", 1.0, DELTA, 0.95, 1000, (free, conditional))
    assert "valid only for Gaussian noise" in report.meaning
    both = dataclasses.replace(report, claimed_epsilon=0.4)
    assert both.verdict == "violated" and "Gaussian" not in both.meaning


def test_every_run_is_counted_once_and_memory_is_bounded(monkeypatch) -> None:
    drawn = Counter()

    def draw(world, trials, rng):
        drawn[world] += trials
        drawn["largest"] = max(drawn["largest"], trials)
        return laplace(2.0, outputs=4).sample(world, trials, rng)

    whole = audit(Mechanism("counted", draw), 1.0, trials=20_001)
    assert (drawn[0], drawn[1]) == (20_002, 20_001)  # one more to see the shape
    monkeypatch.setattr(auditor, "ENTRIES", 4 * 700)
    drawn.clear()
    batched = audit(Mechanism("counted", draw), 1.0, trials=20_001)
    assert (drawn[0], drawn[1], drawn["largest"]) == (20_002, 20_001, 700)
    assert batched.trials == whole.trials == 20_001
    assert batched.lower_bound == pytest.approx(whole.lower_bound, rel=0.15)


def test_one_generator_state_gives_one_report() -> None:
    assert audit(laplace(1.0), 1.0, seed=3) == audit(laplace(1.0), 1.0, seed=3)
    assert audit(laplace(1.0), 1.0, seed=3) != audit(laplace(1.0), 1.0, seed=4)


def test_constant_outputs_show_nothing() -> None:
    target = Mechanism("constant", lambda world, trials, rng: np.ones((trials, 3)))
    report = audit(target, 0.0)
    assert report.lower_bound == 0.0 and report.verdict == "consistent"


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ({"claim": -1.0}, "claimed_epsilon = -1.*>= 0"),
        ({"claim": math.nan}, "claimed_epsilon = nan"),
        ({"delta": 1.0}, "delta = 1.*< 1"),
        ({"delta": -1e-9}, "delta = -1e-09"),
        ({"trials": 99}, "trials = 99.*>= 100"),
        ({"trials": 1000.5}, "trials = 1000.5"),
        ({"confidence": 1.0}, "confidence = 1.*< 1"),
        ({"confidence": 0.0}, "confidence = 0.*> 0"),
    ],
)
def test_bad_input_is_named_with_its_range(change: dict, shown: str) -> None:
    with pytest.raises(InvalidInput, match=shown):
        audit(coin(), **{"claim": 1.0, "trials": 100, **change})


def test_a_generator_is_needed() -> None:
    with pytest.raises(InvalidInput, match=r"rng = 0.*numpy\.random\.Generator"):
        audit_target(coin(), 1.0, 0.0, 100, rng=0)


@pytest.mark.parametrize(
    ("draw", "shown"),
    [
        (lambda w, n, rng: np.zeros(n), r"shape \(1,\)"),
        (lambda w, n, rng: np.zeros((n + 1, 2)), r"shape \(2, 2\), but 1 trials"),
        (lambda w, n, rng: np.zeros((n, 0)), "outputs >= 1"),
        (lambda w, n, rng: np.full((n, 1), np.inf * w if w else 0), "inf in world 1"),
    ],
)
def test_targets_that_break_the_contract_are_refused(draw: Callable, shown: str) -> None:
    with pytest.raises(InvalidInput, match=shown):
        audit(Mechanism("broken", draw), 1.0)


@pytest.mark.parametrize("known", [lambda x: x, lambda x: np.full(len(x), np.nan)])
def test_scores_that_break_the_contract_are_refused(known: Callable) -> None:
    with pytest.raises(InvalidInput, match="one per output, none of them NaN"):
        audit(dataclasses.replace(laplace(1.0), known=known), 1.0)


def test_learned_scores_refuse_samples_that_do_not_fit_together() -> None:
    with pytest.raises(InvalidInput, match=r"\(5, 2\) and \(5, 3\)"):
        learned_scores(np.zeros((5, 2)), np.zeros((5, 3)))
    with pytest.raises(InvalidInput, match="not empty"):
        learned_scores(np.zeros((5, 2)), np.zeros((0, 2)))


def test_the_linear_score_is_the_inverse_covariance_times_the_mean_difference() -> None:
    rng = np.random.default_rng(0)
    mix, gap = rng.normal(size=(4, 4)), np.array([1.0, -2.0, 0.5, 0.0])
    worlds = [rng.normal(size=(200_000, 4)) @ mix + world * gap for world in (0, 1)]
    (score,) = [s for s in learned_scores(*worlds) if s.name == "linear, ridge 1e-09"]
    weights = score.of(np.eye(4))
    expected = np.linalg.solve(mix.T @ mix, gap)
    cosine = weights @ expected / np.linalg.norm(weights) / np.linalg.norm(expected)
    assert cosine > 0.999


def test_only_the_coordinates_that_moved_most_enter_a_linear_score(monkeypatch) -> None:
    monkeypatch.setattr(scores, "LINEAR", 3)
    rng = np.random.default_rng(0)
    worlds = [rng.normal(world * np.arange(6), 1.0, (500, 6)) for world in (0, 1)]
    linear = [s for s in learned_scores(*worlds) if s.name.startswith("linear")]
    assert len(linear) == len(scores.RIDGES)
    for score in linear:
        assert np.flatnonzero(score.of(np.eye(6))).tolist() == [3, 4, 5]


def test_events_are_printed_as_they_are_counted() -> None:
    score = Score("x", lambda outputs: outputs[:, 0])
    values = np.array([[1.0], [2.0], [3.0]])
    (event,) = strongest_events([score], values + 10, values, [pure], 0.1)
    assert str(event) == "x <= 3" and event.count(values) == 3 and event.count(values + 10) == 0
