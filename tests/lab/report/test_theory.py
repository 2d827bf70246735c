from tacit.agents import agents
from tacit_lab.report.theory import COUNTERPARTS, THEOREMS, theorem


def test_every_learner_has_a_row_and_every_private_one_a_counterpart() -> None:
    references = {"uniform", "optimal", "do-nothing"}
    assert set(THEOREMS) | references == {entry.name for entry in agents}
    private = {entry.name for entry in agents if "epsilon" in entry.parameters}
    assert set(COUNTERPARTS) == private
    assert not set(COUNTERPARTS.values()) & private


def test_a_private_bound_has_both_exponents_and_a_free_one_has_one() -> None:
    for name, bound in THEOREMS.items():
        if name in COUNTERPARTS:
            assert (bound.users is None) == (bound.privacy is None), name
            assert bound.privacy is None or bound.privacy < 0 < bound.users <= 1
        else:
            assert bound.privacy is None


def test_the_local_variant_has_another_exponent() -> None:
    joint = theorem({"name": "private-linopt-vi", "parameters": {"model": "joint"}})
    local = theorem({"name": "private-linopt-vi", "parameters": {"model": "local"}})
    assert (joint.users, local.users) == (0.5, 0.75)
    assert theorem({"name": "mine", "parameters": {}}).users is None
