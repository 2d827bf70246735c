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
from tacit import Participation
from tacit.agents import agents
from tacit.privacy import Guarantee
from tacit.privacy.accounting import gaussian_epsilon, gaussian_mu
from tacit.privacy.sentences import at_most, brief, consent, meaning, statement
from tacit.problems.classic_control import cart_pole

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
    assert "every time, and no number is promised for all of them" in statement(visit)
    assert "One person may take part" not in statement(
        dataclasses.replace(visit, participations=None)
    )
    nested = statement(SHUFFLED).split("\n")
    assert meaning(SHUFFLED) in nested and meaning(PURE) in nested


def test_the_statement_has_it_as_its_third_line_and_names_events() -> None:
    for guarantee in (PURE, GAUSSIAN, SHUFFLED):
        lines = statement(guarantee).split("\n")
        assert lines[2] == meaning(guarantee)
        assert re.search("every event in (all|everything) .* by at most a factor e", lines[1])
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


MONTH = "period of 30 days"
MONTHLY = {
    teaches: dataclasses.replace(
        one, participations=None, rule=Participation(None, teaches, period="30d")
    )
    for teaches, one in (("first", PURE), ("lifetime", GAUSSIAN))
}


@pytest.mark.parametrize(
    ("guarantee", "words"),
    [
        (PURE, "local epsilon 1"),
        (MONTHLY["first"], f"local epsilon 1 per {MONTH}"),
        (MONTHLY["lifetime"], f"joint epsilon 1, delta 1e-05 per {MONTH}"),
        (
            dataclasses.replace(MONTHLY["first"], requested_epsilon=2.0),
            f"local epsilon 1 per {MONTH} (asked for 2)",
        ),
        (
            dataclasses.replace(
                MONTHLY["lifetime"],
                requested_epsilon=1.0,
                requested_delta=1e-6,
                delta_at_requested_epsilon=1e-5,
            ),
            f"joint epsilon 1, delta 1e-05 per {MONTH} (asked for 1e-06)",
        ),
        (
            MONTHLY["lifetime"].compose(12),
            "joint epsilon 4.02, delta 1e-05 over 12 periods of 30 days",
        ),
        (PURE.compose(12), "local epsilon 12 over 12 tasks"),
        (
            MONTHLY["first"].compose(3) + PURE,
            "local epsilon 4 over 3 periods of 30 days and 1 task without periods",
        ),
        (dataclasses.replace(PURE, unit="participation"), "local epsilon 1 per participation"),
    ],
)
def test_legends_name_what_their_numbers_are_over(guarantee: Guarantee, words: str) -> None:
    assert brief(guarantee) == words
    whole = words.split("epsilon")[1]
    for part in re.findall(r" (?:per|over) [^(]*", whole):
        assert part.strip() in statement(guarantee).split(", " + guarantee.model)[0]


@pytest.mark.parametrize("teaches", ["first", "lifetime"])
def test_a_statement_of_a_period_says_what_two_and_twelve_cost(teaches: str) -> None:
    """By the accountant: pure epsilons add up; sqrt(12) mu costs 4.01807 at delta 1e-5."""
    one = MONTHLY[teaches]
    lines = statement(one).split("\n")
    assert lines[0].startswith(f"(1, {at_most(one.delta)})-differential privacy per {MONTH}, ")
    assert f"all their participations of a {MONTH} by anything else" in lines[1]
    assert f"which of two stories is true of a user in one {MONTH} guesses" in lines[2]
    costs = {"first": ("(2, 0)", "(12, 0)"), "lifetime": ("(1.46517, 1e-05)", "(4.01807, 1e-05)")}
    two, twelve = costs[teaches]
    assert lines[5] == (
        "Budgets are renewed every 30 days, by the calendar, so any 30 days may touch two periods. "
        f"Together cost 2 periods {two} and 12 periods {twelve}."
    )
    assert told(one).endswith(
        f"in one {MONTH}; 2 periods together {two}, 12 periods together {twelve}."
    )


def several(teaches: str, periods: int) -> tuple[mpmath.mpf, mpmath.mpf]:
    """The exact numbers of so many periods: sqrt(n) mu, or the best test of n answers."""
    if teaches == "lifetime":
        return shares(dataclasses.replace(GAUSSIAN, mu=math.sqrt(periods) * GAUSSIAN.mu))
    true = mpmath.e / (1 + mpmath.e)
    laws = [
        [
            mpmath.binomial(periods, k) * p**k * (1 - p) ** (periods - k)
            for k in range(periods, -1, -1)
        ]
        for p in (true, 1 - true)
    ]
    guess, alarms, found = mpmath.mpf(0), mpmath.mpf("0.01"), mpmath.mpf(0)
    for hit, alarm in zip(*laws, strict=True):
        guess += max(hit, alarm) / 2
        found += hit * min(1, alarms / alarm)
        alarms = max(mpmath.mpf(0), alarms - alarm)
    return 100 * guess, 100 * found


@pytest.mark.parametrize("teaches", ["first", "lifetime"])
def test_consent_to_a_period_says_what_longer_costs(teaches: str) -> None:
    text = told(MONTHLY[teaches])
    assert "two stories about your steps in one period were" in text
    assert "These numbers cover all times of one period together." in text
    pattern = (
        r"over (\d+) periods they guess right in at most (\S+) of 100 cases and find at most (\S+)"
    )
    for (periods, *said), meant in zip(re.findall(pattern, text), (2, 12), strict=True):
        assert int(periods) == meant
        for printed, exact in zip(said, several(teaches, meant), strict=True):
            assert exact <= mpmath.mpf(printed) <= exact * mpmath.mpf("1.02")
    assert "any 30 days may touch two" in text
    odds = "about your steps in one period change by at most a factor of 2.72."
    assert (odds in text) == (teaches == "first")


def test_consent_promises_nothing_of_periods_that_nothing_is_promised_of() -> None:
    loose = dataclasses.replace(MONTHLY["first"], delta=0.1)
    text = told(loose)
    assert "over 12 periods they guess right in at most 100 of 100 cases" in text
    assert "12 periods together (inf, 1)." in text


def test_what_a_device_sends_at_other_times_is_told_apart_from_what_can_be_seen() -> None:
    """A device of the rule `first` is silent about what happens and not about being there."""
    once = dataclasses.replace(PURE, participations=30, rule=Participation(30, "first"))
    for one in (once, MONTHLY["first"]):
        text = told(one)
        assert "give nothing away" not in text and "give away nothing" not in text
        assert "nothing is sent about what happens, but that you take part can be seen" in text


def test_a_curator_counts_no_more_than_a_bound_and_a_household_is_several_people() -> None:
    often = Participation(30, "lifetime", often=3)  # taught three times, so not "nothing twice"
    text = told(dataclasses.replace(GAUSSIAN, participations=30, rule=often))
    assert "count no more than a fixed amount of it" in text and "twice" not in text
    assert "what they did tells about you too" in text and "live together" not in told(PURE)


def test_a_sum_of_periods_is_about_as_many_and_no_year_of_years() -> None:
    year = MONTHLY["lifetime"].compose(12)
    lines = statement(year).split("\n")
    assert "participations in 12 periods of 30 days by anything else" in lines[1]
    assert "in 12 periods of 30 days, and wonders" in lines[2] and "a user in them" in lines[2]
    assert lines[4] == (
        "A sum over 12 periods of 30 days: it covers whatever one person does in these, of one "
        "task or of several, all of it together; every further period or task costs more."
    )
    assert "one period" not in statement(year) and "144" not in statement(year)
    decade = year.compose(10)
    assert decade == MONTHLY["lifetime"].compose(120)
    assert brief(decade).endswith("over 120 periods of 30 days")


def test_a_sum_of_whole_tasks_names_all_that_one_person_does_in_them() -> None:
    lives = dataclasses.replace(GAUSSIAN, participations=None, rule=Participation(None, "lifetime"))
    lines = statement(lives.compose(3)).split("\n")
    assert "whatever one person does in all their participations in each of 3 tasks" in lines[1]
    assert "as often as is stated for each" in lines[4] and "period" not in statement(lives + lives)
    visits = dataclasses.replace(PURE, unit="participation").compose(3)
    assert "covers one participation in each of them; every further one" in statement(visits)
