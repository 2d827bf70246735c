import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import InvalidInput
from tacit.privacy import Guarantee
from tacit.privacy.events import Disclosure, Event, GaussianEvent, PureEvent
from tacit.privacy.noise import GridLaw, ZeroNoise
from tacit.task.task import Task

LOCAL = Guarantee(
    model="local",
    epsilon=1.25,
    delta=1e-6,
    mechanism="laplace",
    accountant="exact",
    requested_epsilon=1.25,
    requested_delta=1e-6,
    delta_at_requested_epsilon=1e-6,
    noise={"reward": 3.5},
    assumptions=("users report once",),
    revealed=("reward",),
)

KEYS = [
    "model",
    "epsilon",
    "delta",
    "mu",
    "delta_at_requested_epsilon",
    "requested_epsilon",
    "requested_delta",
    "unit",
    "relation",
    "participations",
    "accountant",
    "mechanism",
    "noise",
    "assumptions",
    "revealed",
    "simulated",
    "also",
]


def test_json_has_the_keys_people_script_against() -> None:
    assert list(LOCAL.to_json()) == KEYS
    assert json.loads(json.dumps(LOCAL.to_json())) == LOCAL.to_json()


def test_json_round_trip_keeps_nested_views_and_infinity() -> None:
    nested = Guarantee(
        model="none",
        epsilon=math.inf,
        delta=0.0,
        mechanism="exact",
        accountant="none",
        also=(LOCAL,),
    )
    assert nested.to_json()["epsilon"] is None
    assert Guarantee.from_json(json.loads(json.dumps(nested.to_json()))) == nested


def test_equal_statements_have_one_digest_and_any_difference_shows() -> None:
    assert LOCAL == dataclasses.replace(LOCAL) and hash(LOCAL) == hash(dataclasses.replace(LOCAL))
    for change in ({"epsilon": 1.26}, {"noise": {"reward": 3.6}}, {"assumptions": ()}):
        other = dataclasses.replace(LOCAL, **change)
        assert other != LOCAL and other.digest() != LOCAL.digest()


def test_noise_cannot_be_edited_after_the_fact() -> None:
    with pytest.raises(TypeError):
        LOCAL.noise["reward"] = 0.0  # type: ignore[index]


def test_simulated_marks_every_view() -> None:
    marked = dataclasses.replace(LOCAL, also=(LOCAL,)).as_simulated()
    assert marked.simulated and marked.also[0].simulated and not LOCAL.simulated
    assert "simulated" in str(marked) and "simulated" not in str(LOCAL)


def test_the_statement_says_who_is_trusted_what_is_protected_and_how_well() -> None:
    text = str(LOCAL)
    assert "(1.25, 1e-06)-differential privacy, local model" in text
    assert "any user's whole trajectory" in text
    assert "users report once" in text and "told in advance: reward" in text
    thrice = str(dataclasses.replace(LOCAL, participations=3))
    assert "any user's trajectories (" in thrice and "by any others" in thrice
    visits = dataclasses.replace(LOCAL, unit="participation")
    assert "single participation" in str(visits) and "any user's" not in str(visits)


@pytest.mark.parametrize(
    "broken",
    [
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"delta": 1.5},
        {"delta": -0.1},
        {"epsilon": math.inf},
        {"model": "none"},
        {"mu": -0.1},
        {"mu": math.inf},
        {"mu": math.nan},
    ],
)
def test_impossible_guarantees_cannot_be_made(broken: dict) -> None:
    with pytest.raises(InvalidInput):
        dataclasses.replace(LOCAL, **broken)


def test_silence_refuses_to_pretend() -> None:
    with pytest.raises(InvalidInput, match="without noise"):
        ZeroNoise().fill(GridLaw("laplace", np.ones(3)), np.zeros(3, dtype=np.int64))


def test_printed_numbers_are_rounded_up() -> None:
    close = dataclasses.replace(LOCAL, epsilon=0.8333333333, delta=1.0449e-5)
    assert "(0.833334, 1.05e-05)-differential privacy" in str(close)
    exact = dataclasses.replace(LOCAL, epsilon=1.0, delta=1e-5)
    assert "(1, 1e-05)-differential privacy" in str(exact)


def test_weaker_is_judged_by_delta_as_well() -> None:
    worse = dataclasses.replace(
        LOCAL, epsilon=1.25, delta=0.5, delta_at_requested_epsilon=0.5, requested_delta=1e-6
    )
    assert "WEAKER than asked" in str(worse)
    better = dataclasses.replace(LOCAL, epsilon=0.5, delta_at_requested_epsilon=0.0)
    assert "stronger than asked" in str(better)


def test_repeated_participation_is_said_in_words() -> None:
    assert "take part 3 times" in str(dataclasses.replace(LOCAL, participations=3))
    assert "take part" not in str(LOCAL)


def test_legends_say_the_truth_and_not_the_request() -> None:
    make = dataclasses.replace
    assert LOCAL.brief() == "local epsilon 1.25, delta 1e-06"
    weak = make(LOCAL, epsilon=51.7, delta=0.1, requested_epsilon=20.0, requested_delta=0.1)
    weak = make(weak, delta_at_requested_epsilon=0.98601)
    assert weak.brief() == "local epsilon 20, delta 0.987 (asked for 0.1)"
    pure = make(LOCAL, epsilon=5 / 3, delta=0.0, requested_epsilon=2.0, requested_delta=0.0)
    assert pure.brief() == "local epsilon 1.67 (asked for 2)"
    assert make(pure, requested_epsilon=None).brief() == "local epsilon 1.67"
    none = make(weak, model="none", epsilon=math.inf, delta_at_requested_epsilon=1.0)
    assert none.brief() == "no finite epsilon; delta 1 at epsilon 20"
    silent = make(none, requested_epsilon=None, delta_at_requested_epsilon=None)
    assert silent.brief() == "not private"
    assert make(LOCAL, model="joint", requested_epsilon=None).brief() == (
        "joint epsilon 1.25, delta 1e-06"
    )


# ---- what an event states ----

SMALL = Task("tabular", 3, {"states": 2, "actions": 2}, True, 20)


def statement(event: Event, model: Any = "local", **options: Any) -> Guarantee:
    return event.guarantee(SMALL, model=model, mechanism="noise", accountant="exact", **options)


def test_a_pure_event_is_stated_without_a_delta_whatever_was_asked_for() -> None:
    said = statement(PureEvent(0.7), requested=(1.0, 1e-5))
    assert (said.epsilon, said.delta, said.requested_delta) == (0.7, 0.0, 1e-5)
    assert said.delta_at_requested_epsilon == 0.0


def test_an_event_that_is_not_pure_is_stated_at_the_delta_asked_for_which_must_not_be_zero() -> (
    None
):
    said, event = statement(GaussianEvent(0.5), requested=(1.0, 1e-5)), GaussianEvent(0.5)
    assert (said.epsilon, said.delta) == (event.epsilon(1e-5), 1e-5)
    assert said.delta_at_requested_epsilon == event.delta(1.0)
    with pytest.raises(InvalidInput, match="requested_delta = 0"):
        statement(event, requested=(1.0, 0.0))


@pytest.mark.parametrize("model", ["local", "joint", "shuffle"])
def test_where_everything_is_disclosed_nobody_is_said_to_be_trusted(model: str) -> None:
    said = statement(Disclosure(), model, requested=(1.0, 1e-5))
    assert (said.model, said.epsilon, said.delta_at_requested_epsilon) == ("none", math.inf, 1.0)
