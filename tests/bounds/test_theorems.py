"""The one place that knows theorems: everybody is in it, exponents are those of the orders."""

import math

import pytest

import tacit
from tacit.agents.catalogue import from_people
from tacit.bounds import THEOREMS, theorem
from tacit.bounds.regret import PROOFS
from tacit.bounds.theorems import Scope


def test_every_learner_has_a_row_and_every_private_one_a_counterpart() -> None:
    references = {"uniform", "optimal", "do-nothing"}
    assert set(THEOREMS) | references == {entry.name for entry in from_people()}
    private = {entry.name for entry in from_people() if "epsilon" in entry.parameters}
    counterparts = {name: bound.counterpart for name, bound in THEOREMS.items()}
    assert {name for name, other in counterparts.items() if other is not None} == private
    assert not set(counterparts.values()) & private


def test_a_private_bound_has_both_exponents_and_a_free_one_has_one() -> None:
    for name, bound in THEOREMS.items():
        if bound.counterpart is not None:
            assert (bound.users is None) == (bound.privacy is None), name
            assert bound.privacy is None or bound.privacy < 0 < bound.users <= 1
        else:
            assert bound.privacy is None


def test_whoever_has_an_exponent_has_a_number() -> None:
    ordered = {name for name, bound in THEOREMS.items() if bound.order is not None}
    assert ordered | set(PROOFS) == {n for n, bound in THEOREMS.items() if bound.users is not None}
    assert not ordered & set(PROOFS)


def test_the_local_variant_has_another_exponent() -> None:
    joint = theorem({"name": "private-linopt-vi", "parameters": {"model": "joint"}})
    local = theorem({"name": "private-linopt-vi", "parameters": {"model": "local"}})
    assert (joint.users, local.users) == (0.5, 0.75)
    assert theorem({"name": "mine", "parameters": {}}).users is None


@pytest.mark.parametrize("name", [n for n, bound in THEOREMS.items() if bound.order is not None])
def test_orders_have_the_exponents_that_are_stated(name: str) -> None:
    bound = THEOREMS[name]
    assert bound.order is not None and bound.users is not None

    def order(K: int, epsilon: float) -> float:
        return bound.order(Scope(6, 2, 20, K, 12, epsilon, 1e-5))

    slope = math.log10(order(10**41, 1.0) / order(10**40, 1.0))
    assert slope == pytest.approx(bound.users, abs=1e-3)
    if bound.privacy is not None:
        slope = math.log10(order(10**6, 1e-30) / order(10**6, 1e-29))
        assert -slope == pytest.approx(bound.privacy, abs=1e-3)
    assert bound.lower is None or bound.lower(Scope(6, 2, 20, 10**9, 12, 1.0, 1e-5)) > 0


def test_an_order_is_not_called_a_bound() -> None:
    """Constant 1 is nobody's theorem, and the sentence must not promise it."""
    order = tacit.bound("river-swim", tacit.agent("ucb-vi"), 10**5)
    assert order.kind == "order" and "at most" not in order.statement()
    assert "of order" in order.statement() and "not a number of the theorem" in order.statement()
    proof = tacit.bound("random-mdp", tacit.agent("ldp-obi", epsilon=2.0), 10**5)
    assert proof.kind == "proof" and "at most" in proof.statement() and "says" in proof.statement()
