"""Every sentence about a guarantee that a person reads is made here.

A sentence holds for whoever sees what it names, whatever they know and compute: its numbers come
from the trade-off curve alone, and are rounded up. Only where delta is 0 is something said about
odds; with a delta, odds move by more than e^eps far more often than delta (proofs/sentences.md).
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING

from tacit.errors import InvalidInput
from tacit.util.durations import in_words

if TYPE_CHECKING:
    from tacit.privacy.guarantee import Guarantee
    from tacit.task.participation import Participation

FALSE_ALARMS = 0.01
"""Share of false alarms at which the share of people found is stated."""

NOBODY = "no real person's data was used, none is protected"
"""What a simulated run protects."""

_TRUST = {
    "local": "each user's device randomizes its report before sending it; nobody else is trusted",
    "joint": "a trusted curator sees trajectories; everything it publishes, and every other user's "
    "treatment, is protected",
    "shuffle": "devices randomize their reports and a trusted shuffler hides who sent which",
}

_SEEN = {
    "local": "everything a user's device sends",
    "joint": "everything published and all that other users get to see",
    "shuffle": "all that leaves the shuffler",
}


def at_most(number: float, digits: int = 3) -> str:
    """A risk in that many digits, rounded up: what is printed is never too good.

    >>> at_most(0.8333333333), at_most(1.041e-5, 2), at_most(2.0)
    ('0.834', '1.1e-05', '2')
    """
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(number))
    return f"{float(rounded):.{digits}g}"


def statement(guarantee: Guarantee) -> str:
    """The guarantee in plain words, one sentence or two per line."""
    lines = _no_privacy(guarantee) if guarantee.model == "none" else _headline(guarantee)
    lines += [f"Assumes: {text}." for text in guarantee.assumptions]
    if guarantee.revealed:
        lines.append(f"The learner was told in advance: {', '.join(guarantee.revealed)}.")
    if guarantee.simulated:
        lines.append(
            "The noise was simulated and protects nobody; what is said here would hold with secure "
            "noise."
        )
    lines += [f"Also: {statement(view)}" for view in guarantee.also]
    return "\n".join(lines)


def brief(guarantee: Guarantee) -> str:
    """Model and true values in a few words, for legends.

    Where a delta was asked for, the true one is given at the epsilon asked for.
    """
    asked, asked_delta = guarantee.requested_epsilon, guarantee.requested_delta or 0.0
    at, what = guarantee.delta_at_requested_epsilon, over(guarantee)
    if guarantee.model == "none":
        if asked is None or at is None:
            return "not private"
        return f"no finite epsilon; delta {at_most(at)} at epsilon {asked:g}{what}"
    if asked is not None and at is not None and asked_delta > 0:
        differs = not math.isclose(at, asked_delta, rel_tol=1e-3)
        note = f" (asked for {asked_delta:g})" if differs else ""
        return f"{guarantee.model} epsilon {asked:g}, delta {at_most(at)}{what}{note}"
    line = f"{guarantee.model} epsilon {at_most(guarantee.epsilon)}"
    if guarantee.delta > 0:
        line += f", delta {at_most(guarantee.delta)}"
    if asked is None or math.isclose(asked, guarantee.epsilon, rel_tol=1e-3):
        return line + what
    return f"{line}{what} (asked for {asked:g})"


def over(guarantee: Guarantee) -> str:
    """What the numbers are over, where it is not all that one person does in one task."""
    if guarantee.unit == "participation":
        return " per participation" + (f" in {covered(guarantee)}" if guarantee.parts else "")
    if guarantee.parts:
        return f" over {covered(guarantee)}"
    return f" per period of {in_words(_period(guarantee))}" if _period(guarantee) else ""


def _period(guarantee: Guarantee) -> float:
    """Seconds after which a budget is renewed, so that the statement is about one such period."""
    return 0.0 if guarantee.rule is None else guarantee.rule.period


def covered(guarantee: Guarantee) -> str:
    """The tasks of a sum, and the periods of tasks whose budgets are renewed, counted."""
    counts: dict[float, int] = {}
    for times, part in guarantee.parts:
        counts[_period(part)] = counts.get(_period(part), 0) + times
    tasks = counts.pop(0.0, 0)
    parts = [f"{_count(n, 'period')} of {in_words(length)}" for length, n in sorted(counts.items())]
    if tasks:
        parts.append(_count(tasks, "task") + (" without periods" if counts else ""))
    return " and ".join(parts)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def meaning(guarantee: Guarantee) -> str:
    """What somebody who looks can find out: two numbers, and the odds where they are bounded."""
    guess, detected = _numbers(guarantee)
    whom, many, comma = "a user", "users of whom", "," if guarantee.parts else ""
    if guarantee.unit == "participation":
        whom, many = "a participation", "participations of which"
    if _period(guarantee):
        whom = f"a user in one period of {in_words(_period(guarantee))}"
    if any(_period(part) for _, part in guarantee.parts):
        whom = "a user in them"
    if guarantee.parts and guarantee.unit == "participation":
        whom, many = "a participation in each of them", "such participations of which"
    text = (
        f"Somebody who sees {_seen(guarantee)}{comma} and wonders, fifty-fifty, "
        f"which of two stories is true of {whom} guesses right in at most {guess} of 100 cases; "
        f"with 1 false alarm in 100, at most {detected} of 100 {many} a story is true are found."
    )
    if guarantee.delta == 0.0:
        factor = _factor(guarantee)
        text += f" The odds of any belief about {whom} change by at most a factor of {factor}."
    return text


def _seen(guarantee: Guarantee) -> str:
    """What the probabilities and the guesses are about; nothing is promised of anything else."""
    seen, local = _SEEN[guarantee.model], guarantee.model == "local"
    if local and guarantee.unit == "participation":
        seen = "everything a device sends in one participation"
    if guarantee.parts:
        return f"{seen}, in {covered(guarantee)}"
    return seen + (" in one period" if _period(guarantee) and local else "")


def _numbers(guarantee: Guarantee) -> tuple[str, str]:
    """Of 100: right guesses from fifty-fifty, and people found at one false alarm."""
    curve = guarantee.tradeoff
    return at_most(100.0 * curve.best_guess()), at_most(100.0 * curve.found(FALSE_ALARMS))


def _factor(guarantee: Guarantee) -> str:
    """e^epsilon, as a number while a person can read it."""
    if guarantee.epsilon == 0.0:
        return "1"
    if guarantee.epsilon > math.log(1e6):
        return f"e^{at_most(guarantee.epsilon)}"
    return at_most(math.exp(guarantee.epsilon) * (1 + 1e-12))


def _headline(guarantee: Guarantee) -> list[str]:
    replaced, other = _replaced(guarantee)
    epsilon, delta = at_most(guarantee.epsilon, 6), at_most(guarantee.delta)
    lines = [
        f"({epsilon}, {delta})-differential privacy{over(guarantee)}, {guarantee.model} model: "
        f"{_TRUST[guarantee.model]}.",
        f"Replacing {replaced} by {other} changes the probability of every event in "
        f"{_seen(guarantee)} by at most a factor e^{epsilon}"
        + (f", plus {delta}." if guarantee.delta > 0.0 else "."),
        meaning(guarantee),
        _how(guarantee),
    ]
    if guarantee.parts:
        lines.append(_in_each(guarantee))
    elif guarantee.unit == "participation":
        lines.append(
            "How often one person takes part is not counted: whoever does so several times pays "
            "for every time, and no number is promised for all of them together."
        )
    elif guarantee.rule is not None:
        lines += _by_rule(guarantee, guarantee.rule)
    elif guarantee.participations != 1:
        lines.append(f"One person may take part {guarantee.participations} times; all are covered.")
    return lines + _beside_the_request(guarantee)


def _replaced(guarantee: Guarantee) -> tuple[str, str]:
    """What may be another one without anybody noticing more than is stated, and by what."""
    leaves, where = [guarantee], ""
    if guarantee.parts:
        leaves = [part for _, part in guarantee.parts]
        where = f" in {covered(guarantee)}"
        if not any(map(_period, leaves)):
            where = f" in each of {covered(guarantee)}"
    elif _period(guarantee):
        where = f" of a period of {in_words(_period(guarantee))}"
    if guarantee.unit == "participation":
        return f"the trajectory of any single participation{where}", "any other"
    if any(leaf.rule is not None for leaf in leaves):
        return f"whatever one person does in all their participations{where}", "anything else"
    if any(leaf.participations != 1 for leaf in leaves):
        return f"any user's trajectories (states, actions and rewards){where}", "any others"
    return f"any user's whole trajectory (states, actions and rewards){where}", "any other"


SEVERAL = (2, 12)
"""Periods whose cost together is stated: any length of one period may touch two of the calendar's,
and twelve months are a year."""


def _by_rule(guarantee: Guarantee, rule: Participation) -> list[str]:
    """How often one person may take part, and what several periods cost."""
    together = "those of a period are" if rule.period else "all of them are"
    lines = [f"One person may take part {rule.in_words()}; {together} covered together."]
    if rule.period:
        length = in_words(rule.period)
        costs = " and ".join(f"{n} periods {_cost(guarantee, n)}" for n in SEVERAL)
        lines.append(
            f"Budgets are renewed every {length}, by the calendar, so any {length} may touch two "
            f"periods. Together cost {costs}."
        )
    return lines


def _several(guarantee: Guarantee, periods: int) -> Guarantee | None:
    """What is promised of several periods together; None where it is nothing."""
    try:
        return guarantee.compose(periods)
    except ModuleNotFoundError:  # the distribution tacit-client adds them up plainly
        epsilon, delta = periods * guarantee.epsilon, periods * guarantee.delta
        if delta >= 1.0:
            return None
        return dataclasses.replace(
            guarantee, epsilon=epsilon, delta=type(guarantee.delta)(delta), mu=None
        )
    except InvalidInput:  # a delta of 1
        return None


def _cost(guarantee: Guarantee, periods: int) -> str:
    total = _several(guarantee, periods)
    epsilon, delta = (math.inf, 1.0) if total is None else (total.epsilon, float(total.delta))
    return f"({at_most(epsilon, 6)}, {at_most(delta)})"


ONE_REPORT = "every participation sends exactly one report, and a retry resends the same bytes"
"""What the guarantee of every local mechanism rests on."""

_COUNTED = {
    ("local", "first"): "a report is made once, and a retry resends the same bytes; a "
    "device reports only the first participation of its user{period}, "
    "whatever happens in it; a device that has lost its memory takes its user for a new person",
    ("joint", "first"): "the curator counts only the first participation of a person{period}, "
    "whatever happens in it",
    ("joint", "lifetime"): "the curator remembers what each person has taught{period} and counts "
    "no more than the bound; its memory is secret state",
}

_ATTENDANCE = {
    "public": "when people take part is public: two lives that must look alike come at the same "
    "moments",
    "private": "batches close by a public clock, and how many people took part in one is not "
    "published",
}

_BATCHES = "a participation is in the period in which the batch that it is counted in began"


def rests_on(model: str, rule: Participation, assumptions: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What the guarantee of a task with a participation rule rests on, as sentences."""
    who, period = "joint" if model == "joint" else "local", " in a period" if rule.period else ""
    counting, sentences = _COUNTED.get((who, rule.teaches or "every")), assumptions
    if counting is not None:
        others = (text for text in sentences if text != ONE_REPORT)
        sentences = (*others, counting.format(period=period))
    if model != "none" and (rule.times != 1 or rule.attendance == "private"):
        sentences += (_ATTENDANCE[rule.attendance],)
    if model == "joint" and rule.period:
        sentences += (_BATCHES,)
    return sentences


def _in_each(guarantee: Guarantee) -> str:
    """What a sum is about, and that what is besides it costs more."""
    leaves = [part for _, part in guarantee.parts]
    opening = f"A sum over {covered(guarantee)}: it covers "
    if guarantee.unit == "participation":
        return opening + "one participation in each of them; every further one costs more."
    if any(map(_period, leaves)):
        return opening + (
            "whatever one person does in these, of one task or of several, all of it together; "
            "every further period or task costs more."
        )
    times = {part.participations or 0 for part in leaves}
    least, most = min(times), max(times)
    often = "once" if most == 1 else f"{most:,} times"
    if any(part.rule is not None for part in leaves):
        often = "as often as is stated for each"
    elif least < most:
        often = f"{least:,} to {most:,} times, as stated for each"
    return (
        f"{opening}one person who takes part in each of them {often}, all of it together; every "
        "further task costs more."
    )


def _no_privacy(guarantee: Guarantee) -> list[str]:
    if not guarantee.noise:
        return [
            "NO PRIVACY: epsilon is infinite.",
            "No noise was added. What this learner publishes depends on exact user data and may "
            "disclose any of it.",
        ]
    return [
        f"NO PRIVACY: no finite epsilon holds at delta {at_most(guarantee.delta)}.",
        "Noise was added, but too little: what is published may disclose exact user data.",
        _how(guarantee),
        *_beside_the_request(guarantee),
    ]


def _how(guarantee: Guarantee) -> str:
    return f"Mechanism: {guarantee.mechanism}; accounting: {guarantee.accountant}."


def _beside_the_request(guarantee: Guarantee) -> list[str]:
    """A sentence where the truth is not what was asked for."""
    asked, delta = guarantee.requested_epsilon, guarantee.requested_delta
    at = guarantee.delta_at_requested_epsilon
    weaker = guarantee.epsilon > asked * (1 + 1e-6) if asked is not None else False
    if at is not None and at > (delta or 0.0) * (1 + 1e-6):
        weaker = True
    if asked is None or (not weaker and math.isclose(asked, guarantee.epsilon, rel_tol=1e-6)):
        return []
    verdict = "WEAKER than asked" if weaker else "stronger than asked"
    at_asked = "" if at is None else f"; at epsilon {asked:.6g} the true delta is {at_most(at, 4)}"
    return [
        f"Asked for was epsilon {asked:.6g}, delta {delta or 0.0:.3g}: this noise is "
        f"{verdict}{at_asked}."
    ]


_SENT = {
    "local": "Your device follows what happens over {steps}, makes one report of it, changes the "
    "report at random, and sends only the changed one. The steps themselves stay on your device. "
    "{kept}",
    "joint": "Your device follows what happens over {steps} and sends us the record of it. Our "
    "server adds it to encrypted sums at once and {kept}. Noise is added to everything that is "
    "published from the sums. What is not published, encryption and our care alone protect: you "
    "have to trust us and everybody who can use the key of our server.",
}

_KEPT = {
    ("local", False): "We delete the report once it has been added to sums with those of others; "
    "a copy of our database may hold it longer.",
    ("local", True): "We keep the report, as it was sent, so that our results can be checked.",
    ("joint", False): "stores no copy of it",
    ("joint", True): "keeps an encrypted copy as long as the database exists, so that our results "
    "can be checked",
}

_SEEN_OF_YOU = {
    "local": "everything your device sends",
    "joint": "everything we publish, and all that the other people who take part get to see",
}

_NEAR_YOU = (
    "It is about your own steps: where people who do the same as you, because you live together, "
    "take part as well, what they did tells about you too."
)
"""Owed by the operator in the joint model (proofs/sentences.md): people do not depend on you."""


def consent(
    guarantee: Guarantee, *, name: str, steps: int, kept: bool, searched: bool = False
) -> str:
    """What to tell people before they take part in a served task, in paragraphs.

    Args:
        guarantee: of the task; local or joint.
        name: what the operator calls the task.
        steps: length of an episode.
        kept: whether reports are kept after they were added up.
        searched: whether it is a policy search, which sends one number of an episode.
    """
    model = guarantee.model
    sent = _SENT[model].format(
        steps="one step" if steps == 1 else f"{steps:,} steps", kept=_KEPT[model, kept]
    )
    if searched:
        sent = sent.replace(
            "sends us the record of it", "sends us one number: what they were worth"
        )
        sent += " What your device does differs at random from what others' do, so that we learn."
    guess, detected = _numbers(guarantee)
    within = " in one period" if _period(guarantee) else ""
    numbers = (
        f"Suppose somebody sees {_SEEN_OF_YOU[model]}. If two stories about your steps{within} "
        f"were equally likely to them, they now guess the true one in at most {guess} of 100 "
        "cases; without looking it was 50. If they search for people of whom a story is true, and "
        "accept 1 false alarm among 100 people of whom it is not, they find at most "
        f"{detected} of 100; without looking it was 1. This holds whatever they know and compute"
        + (", and it holds for us as well." if model == "local" else f". {_NEAR_YOU}")
    )
    if guarantee.delta == 0.0:
        numbers += (
            f" The odds of any belief about your steps{within} change by at most a factor of "
            f"{_factor(guarantee)}."
        )
    paragraphs = [
        f'Taking part in "{name}"',
        sent,
        numbers,
        _how_often(guarantee),
        "That you take part, and when, is not hidden: we can see it, and so can whoever watches "
        "your connection. What your device has sent cannot be taken out again, because it is part "
        "of sums and of what was published from them.",
        f"In technical words: ({at_most(guarantee.epsilon, 6)}, {at_most(guarantee.delta)})-"
        f"differential privacy, {model} model, for replacing the data of one {guarantee.unit}"
        f"{_technical_period(guarantee)}.",
    ]
    return "\n\n".join(textwrap.fill(text, 88) for text in paragraphs)


def _technical_period(guarantee: Guarantee) -> str:
    if not _period(guarantee):
        return ""
    costs = ", ".join(f"{n} periods together {_cost(guarantee, n)}" for n in SEVERAL)
    return f" in one period of {in_words(_period(guarantee))}; {costs}"


def _how_often(guarantee: Guarantee) -> str:
    if guarantee.unit == "participation":
        return (
            "These numbers are for taking part once. Nobody counts how often you do, and every "
            "further time gives away more."
        )
    rule = guarantee.rule
    if rule is None and guarantee.participations == 1:
        return "You take part once, and these numbers cover all of it."
    if rule is None:
        return (
            f"You can take part up to {guarantee.participations:,} times. These numbers cover all "
            "of them together."
        )
    text = f"You can take part {rule.in_words()}. "
    if rule.teaches == "first":
        text += (
            f"Only the first time{' of a period' if rule.period else ''} is reported. At the other "
            "times nothing is sent about what happens, but that you take part can be seen then as "
            "well. "
        )
    all_times = "all times of one period together" if rule.period else "all of them together"
    text += f"These numbers cover {all_times}."
    if rule.teaches == "lifetime":
        end = "the period" if rule.period else "the task"
        text += (
            " For this we remember, encrypted, what you have taught, until "
            f"{end} is over, and count no more than a fixed amount of it."
        )
    return text + (f" {_longer(guarantee)}" if rule.period else "")


def _longer(guarantee: Guarantee) -> str:
    """What somebody gives away who takes part in several periods."""
    clauses = []
    for periods in SEVERAL:
        total = _several(guarantee, periods)
        guess, detected = ("100", "100") if total is None else _numbers(total)
        clauses.append(
            f"over {periods} periods they guess right in at most {guess} of 100 cases and find at "
            f"most {detected} of 100 people"
        )
    return (
        f"Whoever takes part in several periods gives away more: {'; '.join(clauses)}. Periods are "
        f"those of the calendar: any {in_words(_period(guarantee))} may touch two."
    )
