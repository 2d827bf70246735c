import dataclasses
import json
import math
from pathlib import Path

import pytest

from tacit.errors import InvalidInput
from tacit.privacy.accounting import gaussian_mu
from tacit.privacy.comparison import compare_statements, implies, read_statement
from tacit.privacy.guarantee import Guarantee

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
    exact = (math.e - math.exp(0.5)) / (1 + math.e)
    assert LOCAL.tradeoff.delta(0.5) == pytest.approx(exact)
    assert implies(LOCAL, changed(epsilon=0.5, delta=0.3))
    assert not implies(LOCAL, changed(epsilon=0.5, delta=0.2))
    both = changed(epsilon=4.0, delta=1e-9, requested_epsilon=1.0, delta_at_requested_epsilon=1e-5)
    assert both.tradeoff.points == ((4.0, 1e-9), (1.0, 1e-5))
    assert NOTHING.tradeoff.points == ()


def test_a_gaussian_statement_promises_its_whole_curve() -> None:
    """(1, 1e-5) by Gaussian noise lets nobody guess above 55.4 of 100; pure 1 allows 73.2."""
    mu = gaussian_mu(1.0, 1e-5)
    gaussian = changed(delta=1e-5, mu=mu)
    assert implies(LOCAL, changed(delta=1e-5)) and not implies(LOCAL, gaussian)
    assert implies(gaussian, changed(delta=1e-5)) and not implies(changed(delta=1e-5), gaussian)
    assert implies(changed(epsilon=0.5 * mu), gaussian)
    assert not implies(changed(epsilon=0.9 * mu), gaussian)
    assert implies(gaussian, changed(epsilon=2.0, delta=1e-12))
    stronger = changed(delta=1e-6, mu=0.9 * mu)
    compared = compare_statements(stronger, gaussian)
    assert compared.stronger == "A"
    assert {d.field: d.stronger for d in compared.differences}["mu"] == "A"
    assert {d.field: d.stronger for d in compare_statements(LOCAL, gaussian).differences}[
        "mu"
    ] is None


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
    assert (found["assumptions"].a, found["assumptions"].b) == ("one report", None)
    assert (found["revealed"].a, found["revealed"].b) == (None, "reward")
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


def test_statements_from_before_there_was_a_mu_are_read(tmp_path: Path) -> None:
    old = {key: value for key, value in GOOD.items() if key != "mu"}
    (tmp_path / "a.json").write_text(json.dumps({**old, "also": [old]}))
    assert read_statement(tmp_path / "a.json") == changed(also=(LOCAL,))


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
        (json.dumps({**GOOD, "mu": "small"}), "its mu is not a number"),
        (json.dumps({**GOOD, "mu": -1.0}), "a Gaussian guarantee has a finite mu"),
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
