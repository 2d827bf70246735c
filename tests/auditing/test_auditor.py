"""The auditor audited: its confidence by simulation, its power on honest and broken mechanisms."""

import dataclasses
import math
import types

import numpy as np
import pytest
from scipy import stats

from auditing.mechanisms import (
    DELTA,
    MU,
    Mechanism,
    audit,
    coin,
    gaussian,
    known_laplace,
    laplace,
    response,
)
from tacit.auditing import audit_target, auditor, findings
from tacit.auditing.bounds import (
    ScoreMoments,
    clopper_pearson_lower,
    epsilon_from_guesses,
    mu_from_pairs,
)
from tacit.auditing.scores import learned_scores, strongest_rule
from tacit.privacy.accounting import gaussian_epsilon, gaussian_mu

# ---- false alarms ----

AUDITS, CONFIDENCE = 400, 0.9
ALARMS = int(stats.binom.isf(1e-3, AUDITS, 1 - CONFIDENCE))
"""An auditor that is wrong in exactly a tenth of its audits exceeds it with probability 1e-3."""


@dataclasses.dataclass
class OnCommonNoise(Mechanism):
    """Gaussian noise that a trial meets again in the other world."""

    def sample_both(self, worlds, rng):
        noise = rng.normal(size=len(worlds))
        return (MU * worlds + noise)[:, None], (MU * (1 - worlds) + noise)[:, None]


COMMON = OnCommonNoise("common", gaussian(MU).draw, lambda x: x[:, 0], "gaussian")

HONEST = {
    "pure": (response(1.0), 1.0, 0.0),
    "pure, likelihood known": (known_laplace(1.0), 1.0, 0.0),
    "gaussian": (gaussian(gaussian_mu(4.0, DELTA)), 4.0, DELTA),
    "gaussian, the same noise in both worlds": (COMMON, 1.0, DELTA),
    "with a delta that is used up": (response(1.0, delta=0.1), 1.0, 0.1),
}


@pytest.mark.parametrize("case", HONEST)
def test_false_alarms_are_as_rare_as_stated_and_bounds_are_not_empty(case: str) -> None:
    """Whole audits, with several looks, of mechanisms that need all of the epsilon they claim."""
    (target, claim, delta), rng = HONEST[case], np.random.default_rng(7)
    reports = [
        audit_target(target, claim, delta, 10_000, CONFIDENCE, rng=rng) for _ in range(AUDITS)
    ]
    alarms = sum(report.verdict == "violated" for report in reports)
    assert alarms == sum(report.lower_bound > claim for report in reports)
    assert alarms <= ALARMS
    assert np.median([report.lower_bound for report in reports]) > 0.8 * claim


@pytest.mark.parametrize(
    ("target", "delta", "true"),
    [
        (laplace(1.0, outputs=6), 0.0, 1.0),
        (laplace(4.0), 0.0, 4.0),
        (gaussian(4.0, np.sign), DELTA, gaussian_epsilon(4.0, DELTA)),
        (gaussian(4.0, lambda x: np.clip(x, 1, 2)), DELTA, gaussian_epsilon(4.0, DELTA)),
        (coin(5), 0.0, 0.0),
        (coin(5), DELTA, 0.0),
    ],
    ids=["many outputs", "large epsilon", "sign", "clipped", "coins", "coins with delta"],
)
def test_the_bound_exceeds_the_truth_no_more_often_than_it_may(target, delta, true) -> None:
    """150 small audits each; the same chance of 1e-3 to fail."""
    rng, above = np.random.default_rng(8), 0
    known = dataclasses.replace(target, known=None, family="unknown")
    for _ in range(150):
        above += audit_target(known, true, delta, 800, 0.8, rng=rng).lower_bound > true
    assert above <= stats.binom.isf(1e-3, 150, 0.2)


def test_guessing_on_the_trials_that_picked_the_rule_would_be_caught_by_these_tests() -> None:
    rng, above = np.random.default_rng(8), 0
    for _ in range(25):
        worlds, outputs = rng.integers(2, size=800), rng.normal(size=(800, 60))  # epsilon = 0
        learned = learned_scores(outputs[worlds == 0], outputs[worlds == 1])
        rule = strongest_rule(learned, outputs, worlds, 0.0, 0.1)
        correct, made = rule.count(outputs, worlds)
        above += made > 0 and epsilon_from_guesses(correct, made, 800, 0.0, 0.1) > 0.0
    assert above > stats.binom.isf(1e-3, 25, 0.1)


def test_error_probabilities_are_shared_out() -> None:
    """One look: learned rules get all of it, or what a known likelihood leaves to them."""
    told = Mechanism("world itself", lambda worlds, rng: worlds[:, None])
    knows = dataclasses.replace(told, known=lambda x: 20.0 * x[:, 0] - 10.0)
    known, rest = auditor.KNOWN_SHARE, 1 - auditor.KNOWN_SHARE
    for target, shares in (
        (told, {"guesses": 1.0}),
        (knows, {"likelihood": known, "guesses": rest}),
        (dataclasses.replace(knows, family="gaussian"), {"guesses": rest}),
    ):
        found = {bound.method: bound for bound in audit(target, 50.0, DELTA, trials=1000).bounds}
        made = 1000 - 125 - 250  # all but those on which scores were fitted and rules picked
        for method, share in shares.items():
            assert found[method].seen == f"{made:,} of {made:,} guesses right"
            expected = epsilon_from_guesses(made, made, made, DELTA, 0.05 * share)
            assert found[method].lower_bound == pytest.approx(float(expected))


# ---- power ----


@pytest.mark.parametrize("make", [laplace, response])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_tightness_and_verdicts_for_pure_mechanisms(make, epsilon: float) -> None:
    right = audit(make(epsilon), epsilon, trials=60_000)
    assert 0.85 * epsilon <= right.lower_bound <= epsilon
    assert right.verdict == "consistent" and right.best.method == "guesses"
    halved = audit(make(2 * epsilon), epsilon, trials=60_000)
    assert halved.verdict == "violated" and halved.lower_bound <= 2 * epsilon
    assert "assuming" not in halved.meaning


def test_a_known_likelihood_shows_more_than_what_can_be_learned() -> None:
    """Among many outputs, of which one tells little: with few trials nothing can be learned."""
    report = audit(known_laplace(1.0, outputs=200), 1.0, trials=2000)
    likelihood, guesses = report.bounds
    assert report.best is likelihood and likelihood.method == "likelihood"
    assert likelihood.lower_bound > 0.6 and "log-likelihood ratio" in likelihood.rule
    blind = audit(laplace(1.0, outputs=200), 1.0, trials=2000)
    assert blind.lower_bound < likelihood.lower_bound
    halved = audit(known_laplace(2.0, outputs=200), 1.0, trials=4000)
    assert halved.verdict == "violated" and "assuming" not in halved.meaning


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_tightness_and_verdicts_for_gaussian_noise(epsilon: float) -> None:
    mu = gaussian_mu(epsilon, DELTA)
    right = audit(gaussian(mu), epsilon, DELTA, trials=60_000)
    assert 0.85 * epsilon <= right.lower_bound <= epsilon
    assert right.verdict == "consistent" and right.best.method == "gaussian"
    less = audit(gaussian(mu / 0.8), epsilon, DELTA, trials=60_000)
    assert less.verdict == "violated"
    assert less.meaning.endswith(f"assuming {findings.GAUSSIAN}")


@pytest.mark.parametrize("noise", ["laplace", "normal"])
def test_one_draw_shared_by_all_outputs_is_caught_by_the_linear_score(noise: str) -> None:
    def draw(worlds, rng):
        size = (len(worlds), 1)
        outputs = np.zeros((len(worlds), 12)) + getattr(rng, noise)(0.0, 10.0, size)
        outputs[:, 3] += worlds
        return outputs

    report = audit(Mechanism("shared noise", draw), 1.0)
    assert report.verdict == "violated" and report.best.rule.startswith("linear")


def test_a_side_field_without_noise_is_caught_and_the_bound_grows_with_the_trials() -> None:
    def draw(worlds, rng):
        noise = rng.laplace(0.0, 1.0, (len(worlds), 4))
        noise[:, 2] = 17.0 + worlds
        return noise

    found = []
    for trials in (1_000, 10_000, 100_000):
        report = audit(Mechanism("side field", draw), math.inf, trials=trials)
        found.append(report.lower_bound)
        right = clopper_pearson_lower(trials * 5 // 8, trials * 5 // 8, 0.05 * 0.75)
        assert report.lower_bound > math.log(right / (1 - right)) - 0.6
    assert np.diff(found) == pytest.approx(math.log(10), abs=0.6)


def test_a_field_that_rarely_tells_is_caught() -> None:
    """With 1 percent probability it says world 1, and else nothing."""

    def draw(worlds, rng):
        noise = rng.laplace(0.0, 1.0, (len(worlds), 30))
        noise[:, 5] = worlds * (rng.random(len(worlds)) < 0.01)
        return noise

    report = audit(Mechanism("rare", draw), 1.0, trials=50_000)
    assert report.verdict == "violated" and "coordinate 5" in report.best.rule


@pytest.mark.parametrize(("outputs", "by"), [(1, "coordinate 0"), (3, "laplace ratio")])
@pytest.mark.parametrize("wide", [0, 1])
def test_noise_whose_spread_depends_on_the_data_is_caught(wide: int, outputs: int, by: str) -> None:
    def draw(worlds, rng):
        return rng.laplace(0.0, 1.0 + 3 * (worlds[:, None] == wide), (len(worlds), outputs))

    report = audit(Mechanism("spread", draw), 0.5)
    assert report.verdict == "violated" and by in report.best.rule


def test_gaussian_noise_with_a_side_channel_is_caught_by_learned_rules() -> None:
    """The likelihood of the declared noise does not read the field that tells."""
    honest = gaussian(MU)

    def draw(worlds, rng):
        return np.column_stack(
            [honest.draw(worlds, rng), rng.normal(size=len(worlds)) + 6 * worlds]
        )

    leaky = dataclasses.replace(honest, draw=draw, known=lambda x: honest.known(x[:, :2]))
    report = audit(leaky, 1.0, DELTA)
    assert report.verdict == "violated" and report.best.method == "guesses"
    assert report.bounds[0].method == "gaussian" and report.bounds[0].lower_bound < 1.0


def test_the_target_s_own_score_is_tried_too() -> None:
    def draw(worlds, rng):  # only whether the number is odd tells
        numbers = 2.0 * rng.integers(10**6, size=len(worlds))
        return (numbers + (rng.random(len(worlds)) < 0.1 + 0.8 * worlds))[:, None]

    blind = Mechanism("parity", draw)
    knows = Mechanism("parity", draw, lambda x: x[:, 0] % 2)
    assert audit(blind, 1.0).verdict == "no evidence"
    report = audit(knows, 1.0)
    assert report.verdict == "violated" and report.best.rule.startswith("log-likelihood ratio")
    infinite = Mechanism("support", draw, lambda x: np.where(x[:, 0] % 2 > 0, 9, -np.inf))
    assert audit(infinite, 1.0).verdict == "violated"


@pytest.mark.parametrize("told", [0, 1])
def test_either_world_may_be_the_more_telling_one(told: int) -> None:
    def draw(worlds, rng):
        return ((worlds == told) & (rng.random(len(worlds)) < 0.3)).astype(float)[:, None]

    assert audit(Mechanism("one-sided", draw), 2.0).verdict == "violated"


# ---- looks, stops, budgets ----


def test_an_audit_stops_when_the_claim_is_refuted() -> None:
    seen: list[str] = []
    report = audit(response(2.0), 1.0, trials=10**7, progress=seen.append)
    assert report.verdict == "violated" and report.trials < 200_000
    assert len(seen) == 1
    assert seen[-1] == f"{report.trials:,} trials, epsilon is at least {report.lower_bound:.3g}"


def test_an_audit_stops_when_nearly_all_is_shown_that_can_be() -> None:
    whole = audit(response(1.0), 1.0, trials=10**7)
    assert whole.verdict == "consistent" and whole.lower_bound >= auditor.ENOUGH
    assert whole.trials < 200_000
    report = audit(dataclasses.replace(response(0.6), distance=0.6), 1.0, trials=10**7)
    assert report.trials < 10**6 and report.verdict == "consistent"
    assert report.lower_bound >= 0.6 * auditor.ENOUGH and report.distance == 0.6


def test_an_audit_that_is_about_to_refute_the_claim_goes_on() -> None:
    """A fifth less noise than is claimed: at some look the bound is just below the claim."""
    for seed in range(8):
        target = gaussian(MU / 0.8)
        report = audit(target, 1.0, DELTA, trials=100_000, seed=seed)
        assert report.verdict == "violated"


def test_an_audit_of_a_weak_mechanism_looks_at_doubling_numbers_of_trials() -> None:
    told: list[str] = []
    report = audit(laplace(0.2), 1.0, trials=50_000, progress=told.append)
    seen = [int(words.split()[0].replace(",", "")) for words in told]
    assert seen[-1] == report.trials == 50_000
    ratios = np.array(seen[1:-1]) / np.array(seen[:-2])
    assert len(seen) > 2 and (ratios == 2.0).all()


def test_what_an_earlier_look_has_shown_stays_shown() -> None:
    """A mechanism that tells the world at first, and nothing later."""
    drawn = [0]

    def draw(worlds, rng):
        drawn[0] += len(worlds)
        told = drawn[0] < 60_000
        return np.where(told, worlds, rng.integers(2, size=len(worlds)))[:, None]

    seen: list[str] = []
    report = audit(Mechanism("tells at first", draw), 20.0, trials=400_000, progress=seen.append)
    bounds = [float(words.split()[-1]) for words in seen]
    assert report.trials == 400_000 and len(bounds) > 3
    assert bounds == sorted(bounds) and bounds[0] > 5.0


def test_every_trial_is_counted_once_and_memory_is_bounded(monkeypatch) -> None:
    drawn: list[int] = []
    honest = laplace(2.0, outputs=4)

    def draw(worlds, rng):
        drawn.append(len(worlds))
        return honest.draw(worlds, rng)

    whole = audit(Mechanism("counted", draw), 20.0, trials=20_001)
    assert sum(drawn) == 20_001 + 1 == whole.trials + 1  # one more to see the shape
    monkeypatch.setattr(auditor, "ENTRIES", 4 * 700)
    drawn.clear()
    batched = audit(Mechanism("counted", draw), 20.0, trials=20_001)
    assert sum(drawn) == 20_002 and max(drawn) == 700
    assert batched.lower_bound == pytest.approx(whole.lower_bound, rel=0.15)


class Clock:
    """Time that passes only when a mechanism runs: a stated time per trial."""

    def __init__(self, per_trial: float) -> None:
        self.now, self.per_trial = 0.0, per_trial

    def perf_counter(self) -> float:
        return self.now

    def slow(self, target: Mechanism) -> Mechanism:
        def draw(worlds, rng):
            self.now += self.per_trial * len(worlds)
            return target.draw(worlds, rng)

        return dataclasses.replace(target, draw=draw)


@pytest.mark.parametrize(
    ("per_trial", "fits"), [(1e-3, 20_000), (0.1, 200), (10.0, auditor.MIN_TRIALS)]
)
def test_the_time_budget_cuts_the_number_of_trials(monkeypatch, per_trial, fits) -> None:
    clock = Clock(per_trial)
    monkeypatch.setattr(auditor, "time", types.SimpleNamespace(perf_counter=clock.perf_counter))
    report = audit(clock.slow(laplace(0.2)), 1.0, trials=10**6, seconds=20.0)
    assert report.trials == pytest.approx(fits, rel=0.02)
    timed = auditor.PROBE + report.trials
    assert clock.now == pytest.approx((1 + timed) * per_trial)
    assert report.seconds == pytest.approx(timed * per_trial)


def test_time_that_suffices_changes_nothing(monkeypatch) -> None:
    clock = Clock(1e-9)
    monkeypatch.setattr(auditor, "time", types.SimpleNamespace(perf_counter=clock.perf_counter))
    report = audit(clock.slow(laplace(0.2)), 1.0, trials=5000, seconds=60.0)
    assert report.trials == 5000


@pytest.mark.parametrize("common", [False, True])
def test_the_gaussian_method_judges_every_trial_in_both_worlds(common: bool) -> None:
    seen: list[tuple] = []

    def draw(worlds, rng):
        seen.append((worlds, (MU * worlds + rng.normal(size=len(worlds)))[:, None]))
        return seen[-1][1]

    class Kept(OnCommonNoise):
        def sample_both(self, worlds, rng):
            found = super().sample_both(worlds, rng)
            seen.extend(zip((worlds, 1 - worlds), found, strict=True))
            return found

    made = Kept if common else Mechanism
    report = audit(made("kept", draw, lambda x: x[:, 0], "gaussian"), 9.0, DELTA, trials=2000)
    own, other = (
        [np.concatenate(parts).ravel() for parts in zip(*some, strict=True)]
        for some in (seen[1::2], seen[2::2])  # the first one shows the shape
    )
    assert len(own[0]) == report.trials == 2000 and np.array_equal(own[0], 1 - other[0])
    first, second = (
        np.where(own[0] == world, own[1], other[1]).round(auditor.DIGITS) for world in (0, 1)
    )
    moments = ScoreMoments(), ScoreMoments(), ScoreMoments()
    for one, values in zip(moments, (first, second, second - first), strict=True):
        one.add(values)
    mu = mu_from_pairs(*moments, 0.05 * auditor.KNOWN_SHARE)
    assert report.bounds[0].lower_bound == pytest.approx(gaussian_epsilon(mu, DELTA), rel=1e-9)


def test_common_noise_shows_nine_tenths_of_the_claim_in_a_thousand_trials() -> None:
    """And refutes a tenth less noise than is claimed; false alarms as above."""
    report = audit(COMMON, 1.0, DELTA, trials=1000)
    assert report.verdict == "consistent" and 0.9 < report.lower_bound <= 1.0
    alone = audit(gaussian(MU), 1.0, DELTA, trials=1000)
    assert alone.lower_bound < 0.7
    less = audit(COMMON, gaussian_epsilon(0.9 * MU, DELTA), DELTA, trials=2000)
    assert less.verdict == "violated"


def test_people_in_one_run_are_judged_by_the_gaussian_method_alone() -> None:
    together = dataclasses.replace(gaussian(MU), separate=False)
    report = audit(together, 1.0, DELTA)
    assert [bound.method for bound in report.bounds] == ["gaussian"]
    assert report.bounds[0].lower_bound <= 1.0
