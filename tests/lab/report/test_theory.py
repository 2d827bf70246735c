from tacit.agents.catalogue import from_people
from tacit_lab.report.analysis import THEOREMS, theorem


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


def test_the_local_variant_has_another_exponent() -> None:
    joint = theorem({"name": "private-linopt-vi", "parameters": {"model": "joint"}})
    local = theorem({"name": "private-linopt-vi", "parameters": {"model": "local"}})
    assert (joint.users, local.users) == (0.5, 0.75)
    assert theorem({"name": "mine", "parameters": {}}).users is None
