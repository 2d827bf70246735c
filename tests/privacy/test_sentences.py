"""What people read about a guarantee: whose eyes, which unit, and numbers never too good."""

import dataclasses
import math
import re
from decimal import Decimal

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.agents import agents
from tacit.privacy import Guarantee
from tacit.privacy.accounting import gaussian_epsilon, gaussian_mu
from tacit.privacy.sentences import at_most, brief, consent, meaning, statement
from tacit.problems.classic import cart_pole

mpmath.mp.dps = 60
PURE = Guarantee("local", 1.0, 0.0, "randomized response", "exact")
GAUSSIAN = Guarantee("joint", 1.0, 1e-5, "gaussian", "exact", mu=gaussian_mu(1.0, 1e-5))
SHUFFLED = dataclasses.replace(PURE, model="shuffle", epsilon=0.5, delta=1e-6, also=(PURE,))

NUMBERS = r"(?:in|find) at most ([\d.e+-]+) of 100.*?at most ([\d.e+-]+) of 100"


def numbers(text: str) -> tuple[Decimal, Decimal]:
    """The two numbers of a text."""
    ((guess, found),) = re.findall(NUMBERS, text.replace("\n", " "), re.DOTALL)
    return Decimal(guess), Decimal(found)


def logs(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def test_the_sentence_of_pure_privacy() -> None:
    """e / (1 + e) = 0.7310586, e / 100 = 0.0271828."""
    assert meaning(PURE) == (
        "Somebody who sees everything a user's device sends and wonders, fifty-fifty, which of two "
        "stories is true of a user guesses right in at most 73.2 of 100 cases; with 1 false alarm "
        "in 100, at most 2.72 of 100 users of whom a story is true are found. The odds of any "
        "belief about a user change by at most a factor of 2.72."
    )


def test_the_sentence_of_gaussian_noise_says_nothing_about_odds() -> None:
    """Phi(mu / 2) = 0.55331 and Phi(Phi^-1(0.01) + mu) = 0.019778 at mu = 0.26805."""
    assert meaning(GAUSSIAN) == (
        "Somebody who sees everything published and all that other users get to see and wonders, "
        "fifty-fifty, which of two stories is true of a user guesses right in at most 55.4 of 100 "
        "cases; with 1 false alarm in 100, at most 1.98 of 100 users of whom a story is true are "
        "found."
    )
    assert "odds" not in statement(GAUSSIAN)


def test_the_sentence_names_what_is_seen_and_whose_data_it_is() -> None:
    assert "sees all that leaves the shuffler and" in meaning(SHUFFLED)
    assert "odds" not in meaning(SHUFFLED)
    visit = dataclasses.replace(PURE, unit="participation")
    assert "everything a device sends in one participation and" in meaning(visit)
    assert "true of a participation guesses" in meaning(visit)
    assert "100 participations of which a story" in meaning(visit)
    nested = statement(SHUFFLED).split("\n")
    assert meaning(SHUFFLED) in nested and meaning(PURE) in nested


def test_the_statement_has_it_as_its_third_line_and_names_events() -> None:
    for guarantee in (PURE, GAUSSIAN, SHUFFLED):
        lines = statement(guarantee).split("\n")
        assert lines[2] == meaning(guarantee)
        assert "changes the probability of every event by at most a factor e^" in lines[1]
    assert statement(PURE).split("\n")[1].endswith("a factor e^1.")
    assert statement(GAUSSIAN).split("\n")[1].endswith("a factor e^1, plus 1e-05.")


def test_no_numbers_where_there_is_no_privacy() -> None:
    nothing = Guarantee("none", math.inf, 0.1, "too little", "exact", noise={"radius": 1.0})
    assert "of 100" not in statement(nothing) and "NO PRIVACY" in statement(nothing)


def test_a_simulated_run_says_that_seeded_noise_protects_nobody() -> None:
    assert statement(PURE.as_simulated()).split("\n")[-1] == (
        "The noise was simulated and protects nobody; what is said here would hold with secure "
        "noise."
    )


def test_two_stated_points_give_the_better_number() -> None:
    weak = dataclasses.replace(PURE, epsilon=4.0, delta=1e-9)
    asked = dataclasses.replace(weak, requested_epsilon=1.0, delta_at_requested_epsilon=1e-5)
    assert numbers(meaning(weak))[0] > 98 and numbers(meaning(asked))[0] == Decimal("73.2")


def shares(guarantee: Guarantee) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The exact numbers, of 100, in sixty digits."""
    if guarantee.mu is not None:
        mu = mpmath.mpf(guarantee.mu)
        quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf("0.01") - 1)
        return 100 * mpmath.ncdf(mu / 2), 100 * mpmath.ncdf(quantile + mu)
    power, d = mpmath.exp(mpmath.mpf(guarantee.epsilon)), mpmath.mpf(guarantee.delta)
    a = mpmath.mpf("0.01")
    found = min(power * a + d, 1 - (1 - d - a) / power)
    return min(100 * (power + d) / (1 + power), mpmath.mpf(100)), 100 * found


LEVELS = st.tuples(logs(1e-8, 1e4), st.one_of(st.just(0.0), logs(1e-300, 0.1)))
MODELS = st.sampled_from(["local", "joint", "shuffle"])


@given(LEVELS, MODELS)
def test_no_printed_number_is_below_the_exact_value(level: tuple[float, float], model) -> None:
    check(dataclasses.replace(PURE, model=model, epsilon=level[0], delta=level[1]))


@given(logs(1e-8, 1e3), logs(1e-300, 0.1), MODELS)
def test_no_printed_number_of_gaussian_noise_is_below_the_exact_value(mu, delta, model) -> None:
    check(dataclasses.replace(PURE, model=model, epsilon=1.0, delta=delta, mu=mu))


def check(guarantee: Guarantee) -> None:
    texts = [meaning(guarantee)]
    if guarantee.model != "shuffle":
        texts.append(consent(guarantee, name="x", steps=2, kept=False))
    for text in texts:
        for printed, exact in zip(numbers(text), shares(guarantee), strict=True):
            shown = mpmath.mpf(str(printed))
            assert exact <= shown <= max(exact * mpmath.mpf("1.0101"), 100 * mpmath.mpf("0.01"))
    first, second = statement(guarantee).split("\n")[:2]
    epsilon, delta = re.findall(r"^\((\S+), (\S+)\)-", first)[0]
    assert Decimal(epsilon) >= Decimal(repr(guarantee.epsilon))
    assert Decimal(delta) >= Decimal(repr(guarantee.delta))
    assert f"e^{epsilon}" in second
    if guarantee.delta == 0.0:
        ((power, factor),) = re.findall(r"factor of (e\^)?([\d.e+]+)\.$", texts[0])
        shown = mpmath.exp(mpmath.mpf(factor)) if power else mpmath.mpf(factor)
        assert shown >= mpmath.exp(mpmath.mpf(guarantee.epsilon))
    assert "nan" not in statement(guarantee) and brief(guarantee)


def test_rounding_goes_up_and_keeps_what_is_exact() -> None:
    assert [at_most(x) for x in (50.0, 50.000001, 99.99, 0.0, 1e-300)] == [
        *("50", "50.1", "100", "0", "1e-300")
    ]
    silent = dataclasses.replace(PURE, epsilon=0.0)
    assert numbers(meaning(silent)) == (50, 1) and meaning(silent).endswith("a factor of 1.")


GAUSSIAN_TOO = {
    "ldp-obi": {"randomizer": "gaussian", "delta": 1e-5},
    "private-linopt-vi": {"model": "local"},
}
FITS = dict.fromkeys(
    ("private-ofu-rl", "tacit-control", "ofu-rl", "certainty-equivalence", "thompson"), "lq-scalar"
) | {"do-nothing": "lq-scalar", "ldp-bandit": "linear-bandit"}


@pytest.mark.parametrize(
    ("name", "more"),
    [*((entry.name, {}) for entry in agents), *GAUSSIAN_TOO.items()],
)
def test_every_gaussian_mechanism_states_the_mu_of_its_noise(name: str, more: dict) -> None:
    (entry,) = (entry for entry in agents if entry.name == name)
    asked = {"epsilon": 1.0, **more} if "epsilon" in entry.parameters else more
    searched = entry.factory.families == ("episodic",)
    problem = cart_pole() if searched else tacit.problem(FITS.get(name, "random-mdp"))
    said = tacit.guarantee(problem, entry.factory(**asked), episodes=10)
    for view in (said, *said.also):
        assert (view.mu is not None) == ("gaussian" in view.mechanism)
        if view.mu is not None:
            assert gaussian_epsilon(view.mu, view.delta) == view.epsilon
            assert f"mu = {view.mu:.6g}" in view.accountant
    assert Guarantee.from_json(said.to_json()) == said


def told(guarantee: Guarantee, kept: bool = False) -> str:
    text = consent(guarantee, name="daily coach", steps=7, kept=kept)
    assert max(map(len, text.split("\n"))) <= 88
    return " ".join(text.split())


def test_consent_in_the_local_model() -> None:
    text = told(PURE)
    assert text.startswith('Taking part in "daily coach" Your device follows what happens over 7')
    assert "sees everything your device sends." in text and "holds for us as well" in text
    assert numbers(text) == (Decimal("73.2"), Decimal("2.72"))
    assert "change by at most a factor of 2.72." in text
    assert "We delete the report" in text and "We keep the report" in told(PURE, kept=True)


def test_consent_in_the_joint_model() -> None:
    text = told(GAUSSIAN)
    assert "everything we publish, and all that the other people who take part get to see" in text
    assert numbers(text) == (Decimal("55.4"), Decimal("1.98")) and "odds" not in text
    assert "you have to trust us" in text and "holds for us" not in text
    assert "stores no copy" in text and "keeps an encrypted copy" in told(GAUSSIAN, kept=True)


@pytest.mark.parametrize("guarantee", [PURE, GAUSSIAN])
def test_every_consent_says_what_is_not_hidden_and_whom_the_numbers_cover(guarantee) -> None:
    text = told(guarantee)
    assert "That you take part, and when, is not hidden" in text
    assert "cannot be taken out again" in text
    assert "You take part once, and these numbers cover all of it." in text
    thrice = told(dataclasses.replace(guarantee, participations=3))
    assert "up to 3 times. These numbers cover all of them together." in thrice
    visit = told(dataclasses.replace(guarantee, unit="participation"))
    assert "Nobody counts how often you do" in visit and "of one participation." in visit
