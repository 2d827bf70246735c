"""What an audit says, and what it refuses to be asked."""

import dataclasses
import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from auditing.mechanisms import (
    DELTA,
    MU,
    Draw,
    Mechanism,
    audit,
    coin,
    gaussian,
    laplace,
    response,
)
from tacit.auditing import AuditReport, MethodBound, audit_target, findings
from tacit.errors import InvalidInput

# ---- the report ----


def test_json_has_the_keys_people_script_against() -> None:
    report = audit(gaussian(MU), 1.0, DELTA, trials=60_000)
    data = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert data == report.to_json()
    assert set(data) >= {
        "claimed_epsilon", "delta", "lower_bound", "confidence", "trials", "verdict", "meaning",
        "distance", "method", "bounds", "target", "source", "seconds",
    }  # fmt: skip
    assert [bound["method"] for bound in data["bounds"]] == ["gaussian", "guesses"]
    assert data["lower_bound"] == max(bound["lower_bound"] for bound in data["bounds"])
    assert data["method"] == "gaussian" and data["source"] == "simulated"
    assert data["bounds"][0]["assumption"] == findings.GAUSSIAN


def test_the_gaussian_method_runs_only_for_declared_gaussian_noise_and_delta() -> None:
    declared = gaussian(MU)
    undeclared = dataclasses.replace(declared, family="laplace")
    assert [b.method for b in audit(undeclared, 1.0, DELTA).bounds] == ["likelihood", "guesses"]
    assert [b.method for b in audit(declared, 1.0, 0.0).bounds] == ["likelihood", "guesses"]
    assert [b.method for b in audit(laplace(1.0), 1.0, DELTA).bounds] == ["guesses"]


def test_verdicts_and_their_words() -> None:
    consistent = audit(response(1.0), 1.0)
    assert consistent.verdict == "consistent" and "no guarantee" in consistent.meaning
    nothing = audit(response(1.0), math.inf)
    assert nothing.verdict == "no claim" and nothing.to_json()["claimed_epsilon"] is None
    assert nothing.lower_bound > 0.8
    violated = audit(response(1.0), 0.5)
    assert violated.verdict == "violated" and "refuted" in violated.meaning
    weak = audit(response(0.4), 1.0)
    assert weak.verdict == "no evidence" and "more trials may help" in weak.meaning
    assert weak.lower_bound < findings.STRONG * weak.claimed_epsilon


def test_a_pair_at_distance_zero_is_no_evidence_whatever_was_seen() -> None:
    report = audit(dataclasses.replace(coin(), distance=0.0), 1e-9, trials=1000)
    assert report.verdict == "no evidence" and "contribute the same" in report.meaning
    refuted = dataclasses.replace(
        report, bounds=(MethodBound("guesses", 2.0, findings.NOTHING, "", ""),)
    )
    assert refuted.verdict == "violated"


def test_a_refutation_that_rests_on_an_assumption_says_so() -> None:
    free = MethodBound("guesses", 0.5, findings.NOTHING, "", "")
    conditional = MethodBound("gaussian", 1.5, findings.GAUSSIAN, "", "")
    report = AuditReport("x", "secure", 1.0, DELTA, 0.95, 1000, None, (free, conditional))
    assert report.meaning.endswith(f"assuming {findings.GAUSSIAN}")
    both = dataclasses.replace(report, claimed_epsilon=0.4)
    assert both.verdict == "violated" and "Gaussian" not in both.meaning


def test_one_generator_state_gives_one_report() -> None:
    def found(seed: int) -> dict:
        return {**audit(laplace(1.0), 1.0, seed=seed).to_json(), "seconds": 0}

    assert found(3) == found(3) != found(4)


def test_constant_outputs_show_nothing() -> None:
    report = audit(Mechanism("constant", lambda worlds, rng: np.ones((len(worlds), 3))), 1.0)
    assert report.lower_bound == 0.0 and report.verdict == "no evidence"


# ---- bad input ----


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
        (lambda w, rng: np.zeros(len(w)), r"shape \(1,\), but 1 trials must give shape \(1, outp"),
        (lambda w, rng: np.zeros((len(w) + 1, 2)), r"shape \(2, 2\), but 1 trials"),
        (lambda w, rng: np.zeros((len(w), 0)), "outputs >= 1"),
        (lambda w, rng: np.where(w == 1, np.inf, 0.0)[:, None], "gave inf.*finite"),
        (lambda w, rng: np.where(w == 1, np.nan, 0.0)[:, None], "gave nan.*finite"),
    ],
)
def test_targets_that_break_the_contract_are_refused(draw: Draw, shown: str) -> None:
    with pytest.raises(InvalidInput, match=f"broken {shown}" if "gave" in shown else shown):
        audit(Mechanism("broken", draw), 1.0)


@pytest.mark.parametrize("family", ["unknown", "gaussian"])
@pytest.mark.parametrize("known", [lambda x: x, lambda x: np.full(len(x), np.nan)])
def test_scores_that_break_the_contract_are_refused(known: Callable, family: str) -> None:
    with pytest.raises(InvalidInput, match="one per output, none of them NaN"):
        audit(dataclasses.replace(gaussian(1.0), known=known, family=family), 1.0, DELTA)
