import dataclasses
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtr

from tacit.errors import InvalidInput
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.statements import compare_statements, delta_at, implies, read_statement

LOCAL = Guarantee("local", 1.0, 0.0, "subset selection", "exact", assumptions=("one report",))


def changed(**fields) -> Guarantee:
    return dataclasses.replace(LOCAL, **fields)


JOINT = changed(
    model="joint", delta=1e-6, mechanism="gaussian", noise={"sums std": 3.0, "releases": 4}
)
NOTHING = Guarantee("none", math.inf, 0.0, "none", "none")


@pytest.mark.parametrize(
    ("a", "b", "stronger"),
    [
        (LOCAL, changed(mechanism="other"), "same"),
        (LOCAL, changed(epsilon=2.0), "A"),
        (changed(delta=1e-6), LOCAL, "B"),
        (LOCAL, JOINT, "A"),
        (dataclasses.replace(JOINT, epsilon=0.5), LOCAL, None),
        (LOCAL, NOTHING, "A"),
        (NOTHING, NOTHING, "same"),
        (LOCAL, changed(unit="participation"), "A"),
        (LOCAL, changed(participations=3), "B"),
        (LOCAL, changed(relation="add-remove"), None),
        (changed(epsilon=0.9, delta=1e-3), LOCAL, None),
        (changed(model="shuffle", epsilon=0.3, delta=1e-6, also=(LOCAL,)), LOCAL, "A"),
        (changed(model="shuffle", epsilon=0.3, delta=1e-6), LOCAL, None),
    ],
)
def test_which_promise_is_the_stronger(a: Guarantee, b: Guarantee, stronger: str | None) -> None:
    mirrored = {"A": "B", "B": "A"}.get(stronger, stronger)
    assert compare_statements(a, b).stronger == stronger
    assert compare_statements(b, a).stronger == mirrored


def test_another_delta_is_compared_by_what_follows() -> None:
    """Pure 1 implies (0.5, 0.3), though not (0.5, 0.2): its delta there is 0.2867."""
    assert delta_at(LOCAL, 0.5) == pytest.approx((math.e - math.exp(0.5)) / (1 + math.e))
    assert implies(LOCAL, changed(epsilon=0.5, delta=0.3))
    assert not implies(LOCAL, changed(epsilon=0.5, delta=0.2))
    both = changed(epsilon=4.0, delta=1e-9, requested_epsilon=1.0, delta_at_requested_epsilon=1e-5)
    assert delta_at(both, 1.0) == 1e-5 and delta_at(both, 5.0) == 1e-9


@given(st.floats(0.01, 6), st.floats(0.0, 6))
def test_the_conversion_is_attained_by_randomized_response(epsilon: float, at: float) -> None:
    keep = expit(epsilon)
    exact = max(0.0, keep - math.exp(at) * (1 - keep))
    assert delta_at(changed(epsilon=epsilon), at) == pytest.approx(exact, abs=1e-12)


@given(st.floats(0.05, 3), st.floats(0.01, 4), st.floats(0.0, 4))
def test_the_conversion_never_promises_more_than_a_gaussian_gives(
    mu: float, epsilon: float, at: float
) -> None:
    def true(e: float) -> float:
        return float(ndtr(mu / 2 - e / mu) - math.exp(e) * ndtr(-mu / 2 - e / mu))

    stated = changed(epsilon=epsilon, delta=min(1.0, max(0.0, true(epsilon))))
    assert delta_at(stated, at) >= true(at) - 1e-12


def test_every_field_that_differs_is_named_with_who_is_ahead() -> None:
    noisy = {"sums std": 6.0, "releases": 5}
    other = dataclasses.replace(
        JOINT, epsilon=0.5, noise=noisy, assumptions=(), revealed=("reward",), simulated=True
    )
    found = {d.field: d for d in compare_statements(JOINT, other).differences}
    assert set(found) == {
        *("epsilon", "simulated", "noise.sums std", "noise.releases", "assumptions", "revealed")
    }
    assert found["epsilon"].stronger == found["noise.sums std"].stronger == "B"
    assert found["simulated"].stronger == "A" and found["noise.releases"].stronger is None
    assert found["assumptions"].words == "only A assumes: one report"
    assert found["revealed"].words == "only B told the learner: reward"
    verdict = compare_statements(JOINT, other).verdict
    assert verdict[0] == "B protects more: its promise implies A's, and not the other way."
    assert verdict[1] == "B was made in simulation: nobody is protected by that run itself."
    assert json.loads(json.dumps(compare_statements(JOINT, other).to_json()))["stronger"] == "B"


def test_parameters_of_another_mechanism_are_one_line() -> None:
    other = dataclasses.replace(JOINT, mechanism="counter", noise={"releases": 4, "norm": 1.5})
    found = {d.field: d for d in compare_statements(JOINT, other).differences}
    assert set(found) == {"mechanism", "noise"}
    assert found["noise"].words == "noise of other kinds: A has sums std 3; B has norm 1.5"


def test_a_stronger_promise_on_more_assumptions_says_so() -> None:
    compared = compare_statements(changed(epsilon=0.5), changed(assumptions=()))
    assert compared.verdict[1] == "That rests on assumptions that only A makes; read them."
    same = compare_statements(LOCAL, LOCAL)
    assert same.verdict == ("The two statements say the same, word for word.",)


@pytest.mark.parametrize("wrap", [lambda g: g, lambda g: {"tacit": "0", "guarantee": g}])
def test_statements_are_read_bare_and_wrapped(tmp_path: Path, wrap) -> None:
    shuffled = changed(model="shuffle", also=(LOCAL,))
    for statement in (LOCAL, NOTHING, shuffled):
        (tmp_path / "a.json").write_text(json.dumps(wrap(statement.to_json())))
        assert read_statement(tmp_path / "a.json") == statement


GOOD = LOCAL.to_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "is not a JSON file"),
        ("[1]", "it is a list, not an object"),
        ('{"x": 1}', "it has no 'model'"),
        (json.dumps({**GOOD, "model": "magic"}), "model 'magic' is none of"),
        (json.dumps({**GOOD, "epsilon": "one"}), "could not convert string"),
        (json.dumps({**GOOD, "delta": "x"}), "its delta is not a number"),
        (json.dumps({**GOOD, "delta": 2}), "delta = 2, but a guarantee has delta in"),
        (json.dumps({**GOOD, "assumptions": "none"}), "its assumptions is not a list"),
        (json.dumps({**GOOD, "noise": 3}), "its noise is not an object"),
        (json.dumps({**GOOD, "also": [3]}), "it is a int, not an object"),
    ],
)
def test_what_is_no_statement_is_refused_in_a_sentence(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_statement(tmp_path / "a.json")
