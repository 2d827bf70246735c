"""``tacit study``: two worlds that people care about, and what privacy costs in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as given
from tacit.cli.display import speaker
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit_lab.cases.outcome import Rule

CLINIC = (
    "tacit-offline learns from logs of the clinicians, one release about all patients; epsilon "
    "1000 has next to no noise and shows what the logs alone cost. tacit-joint has no log: it "
    "treats the patients one after the other, some of them to learn.",
    "The table was built by the authors of ICU-Sepsis from hospital records. It is a model of "
    "patients, not patients: no number here is a medical claim.",
    "Survival is counted within 20 steps of four hours.",
)
COACH = (
    "What is learned is scored in the discretised world, whose optimum is known; there a person "
    "who comes back begins anew. The guarantee covers everything that one person does.",
    "Trials of the usual size (37 people in HeartSteps V1, 70 in Oralytics) are far below the "
    "numbers of people here.",
    "Counting first visits assumes that what follows depends on the declared state. Where people "
    "get used to messages and the state does not say so, first visits are those of novices and "
    "promise too much: see the table.",
)


def study(
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", parser=given.one_of("clinic", "coach"), help="clinic or coach"
        ),
    ],
    people: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Numbers of people, as in 1e4,1e5.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="To try, as in 1,2,4,8.")
    ] = None,
    runs: Annotated[int, given.count("Independent runs of each.")] = 10,
    seed: given.Seed = 0,
    agents: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Of the coach, as in tacit-joint,shuffle-obi."),
    ] = None,
    returns: Annotated[int, given.count("How often a person of the coach takes part.")] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for page and numbers.")
    ] = None,
    as_json: given.Json = False,
) -> None:
    """What a private policy is worth in the clinic or for the coach, by people and epsilon.

    Example: tacit study clinic --people 1e5 --epsilon 1 --runs 3

    Example: tacit study coach --people 1e4 --epsilon 8 --runs 2 --out coach
    """
    from tacit.validate import integer
    from tacit.wire.strict_json import finite

    options: dict[str, Any] = {"runs": runs, "seed": seed}
    if people is not None:
        each = given.several(people, "--people", given.whole)
        options["people"] = [integer(n, "--people", low=1) for n in each]
    if epsilon is not None:
        options["epsilons"] = given.several(epsilon, "--epsilon", given.real)
    integer(runs, "--runs", low=1)
    integer(returns, "--returns", low=1)
    say = speaker(quiet=as_json)
    tables: dict[str, Any] = {}
    rule: Rule = "surely" if what == "clinic" else "mostly"
    if what == "clinic":
        from tacit_lab.cases import clinic

        if agents is not None or returns != 1:
            raise InvalidInput("--agents and --returns are for the coach")
        references, limit, notes = clinic.references(clinic.clinic()), "clinicians", CLINIC
        outcomes = list(clinic.clinic_study(**options, watch=_shown(say)))
        begin = clinic.clinic_start
    else:
        from tacit_lab.cases import coach
        from tacit_lab.cases.coach_world import coach as world

        chosen = coach.USUAL if agents is None else _chosen(agents, list(coach.AGENTS))
        options |= {"returns": returns, "agents": chosen}
        references, limit, notes = coach.references(world()), "best fixed message", COACH
        references |= coach.without_privacy(options.get("people", coach.PEOPLE), runs, seed)
        outcomes = list(coach.coach_study(**options, watch=_shown(say)))
        rows = [
            [name, bias.inside, bias.outside, f"{bias.truth:.4g}"]
            for name, bias in coach.habituation_bias(seed=seed).items()
        ]
        names = ["message every day", "habituation declared", "left out", "truth"]
        heading = (
            "What one log says of a message every day, with 95% intervals over people and noise"
        )
        tables[heading] = (names, rows)
        names = ["policy", "people of several kinds", "when they come back"]
        rows = [[name, *tried] for name, tried in coach.tried_policies(outcomes, seed).items()]
        heading = "Tried on people of several kinds, with 95% intervals over people"
        tables[heading] = (names, rows)
        begin = coach.coach_start
    from tacit_lab.cases.outcome import RULES, needed

    level = outcomes[0].epsilon
    starts = [begin(n, level, runs, seed) for n in dict.fromkeys(one.people for one in outcomes)]
    names = ["people in the log", "first users online", "regret per user", "with the log"]
    rows = [[f"{s.people:,}", f"{s.users:,}", s.without, s.prior] for s in starts]
    tables[f"tacit-joint that begins with a log, both at epsilon {level:g}"] = (names, rows)

    found: dict[str, Any] = {
        "study": what,
        "references": references,
        "beat": limit,
        "rule": RULES[rule],
        "outcomes": [one.to_json(references[limit]) for one in outcomes],
        "people_needed": [
            {"agent": agent, "epsilon": level, "people": n}
            for (agent, level), n in needed(outcomes, references[limit], rule).items()
        ],
        "head_start": [
            {
                "people": one.people,
                "users": one.users,
                "regret_per_user": vars(one.without),
                "with_prior": vars(one.prior),
            }
            for one in starts
        ],
    }
    if out is not None:
        from tacit.util.files import make_folder, write_json
        from tacit_lab.cases.page import write_study

        make_folder(out)
        write_json(out / "study.json", finite(found))
        page = write_study(
            out / "page.html", f"The {what}", outcomes, references, limit, rule, notes, tables
        )
        say(f"wrote {page}")
    if as_json:
        print(json.dumps(finite(found), allow_nan=False))
        return
    for name, value in references.items():
        say(f"  {name}: {value:.4g}")
    for one in found["people_needed"]:
        n = one["people"]
        said = "never, up to what was tried" if n is None else f"from {n:,} people on"
        say(f"  {one['agent']}, epsilon {one['epsilon']:g}, beats {limit}: {said}")
    for start in starts:
        say(
            f"  tacit-joint, epsilon {level:g}: the first {start.users:,} users lose "
            f"{start.without.value:.4g} each, and {start.prior.value:.4g} after a log of "
            f"{start.people:,} people (mean of {runs} run{'s' if runs > 1 else ''})"
        )


def _chosen(asked: str, known: list[str]) -> list[str]:
    """Agents of the coach, with their model or without."""
    words = asked.split(",")
    for word in words:
        if not any(name.startswith(word) for name in known):
            raise InvalidInput(f"--agents: the coach has no {word!r}, but {', '.join(known)}")
    return [name for name in known if name.startswith(tuple(words))]


def _shown(say: Callable[..., None]) -> Callable[[Any], None]:
    def watch(one: Any) -> None:
        mean = one.mean
        runs = f"mean of {len(one.values)} runs, 95% interval"
        several = f"{runs} {mean.low:.4g} to {mean.high:.4g}"
        say(
            f"  {one.agent}, {one.people:,} people, epsilon {one.epsilon:g}: {mean.value:.4g} "
            f"({several if len(one.values) > 1 else 'one run, no interval'})"
        )

    return watch
