"""``tacit offline``: a private policy from a log, or what a policy is worth."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as given
from tacit.cli.display import speaker
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.privacy.guarantee import Guarantee
    from tacit.util.intervals import Interval


def offline(
    log: Annotated[
        str,
        typer.Argument(metavar="LOG", help="A .parquet or .csv file, a folder of them, minari:ID."),
    ],
    task: Annotated[
        Path, typer.Option("--task", metavar="TASK.toml", help="The mapping; --init writes one.")
    ] = Path("task.toml"),
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Who learns (default: tacit-offline; see tacit list agents)."
        ),
    ] = None,
    agent_parameters: Annotated[
        given.Pairs, typer.Option("-A", metavar="KEY=VALUE", help="Agent parameter.")
    ] = None,
    epsilon: Annotated[
        float | None, given.number("Privacy asked for, per person (Minari: per episode).")
    ] = None,
    delta: Annotated[float | None, given.number("Likewise (default: 1e-5).")] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where charges are kept (default: NAME.ledger by the task)."
        ),
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Learn nothing: say what this policy is worth."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for policy, values and release.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Write an example to --task and read nothing.")
    ] = False,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Seeded noise, for studies: protects nobody.")
    ] = False,
    seed: given.Seed = 0,
    as_json: given.Json = False,
) -> None:
    """Learn a policy from a log, with one private release about all people in it.

    The ledger of the data set is charged before a row is read, and a release beyond its budget is
    refused. Later nothing is: whatever the rows say, there is a release. How many rows and values
    do not fit the mapping appears on this screen only, exactly: it is in no file and not in --json.
    Try a mapping with --simulated first, which charges nothing. `tacit report DIR` makes a page of
    what --out wrote.

    With --policy nothing is learned: it says what that policy is worth. By a log with propensities
    this is a release of its own, charged to the same ledger; by a folder that --out wrote (as LOG)
    it costs nothing more.

    Example: tacit offline log.csv --task task.toml --init

    Example: tacit offline log.csv --task task.toml --epsilon 1 --out result

    Example: tacit offline result --task task.toml --policy other-policy.json
    """
    if init:
        text = resources.files("tacit.logs").joinpath("example.toml").read_text("utf-8")
        given.write_new(task, text)
        print(f"wrote {task}; say in it what the columns of {log} mean")
        return
    drawn: dict[str, Any] = {"ledger": ledger, "seed": seed}
    drawn["noise"] = "simulated" if simulated else "secure"
    if policy is not None:
        if agent is not None or agent_parameters or out is not None:
            raise InvalidInput(
                "with --policy nothing is learned or written: leave --agent, -A and --out out"
            )
        _evaluate(log, policy, task, (epsilon, delta), drawn, as_json)
        return
    from tacit.logs.files import require_empty, save
    from tacit.logs.offline import offline as learn

    privacy = {"epsilon": epsilon, "delta": delta}
    learner = given.chosen_agent(agent or "tacit-offline", agent_parameters, privacy)
    if out is not None:
        require_empty(out)
    result = learn(log, task, learner, **drawn)
    files = [] if out is None else save(result, out)
    if as_json:
        print(json.dumps(result.to_json()))
        return
    say = speaker()
    say(f"{learner.name} on {result.mapped.name}", style="bold")
    for line in result.exact_counts.lines(result.mapped):
        say(f"  {line}")
    for note in result.mapped.notes:
        say(f"  note: {note}")
    for name, interval in result.values.items():
        say(f"  {TITLES[name]}: {interval_text(interval)}")
    if result.values["difference"] is None:
        say(f"  {result.withheld}")
    say(
        f"  first episodes recorded whole: {100 * result.whole.value:.1f}% of the people (released)"
    )
    for sentence in result.assumes:
        say(f"  {sentence}")
    _privacy(say, result.guarantee)
    for file in files:
        say(f"wrote {file}")


def _evaluate(
    log: str,
    policy: Path,
    task: Path,
    privacy: tuple[float | None, float | None],
    drawn: dict[str, Any],
    as_json: bool,
) -> None:
    """What a policy is worth: by a release that was made before, or by weighing a log anew."""
    from tacit.logs.files import RELEASE, read_release
    from tacit.logs.mapping import read_mapping
    from tacit.logs.offline import evaluate
    from tacit.logs.values import value_by_release, values_json

    say, (epsilon, delta) = speaker(), privacy
    if (Path(log) / RELEASE).exists():
        from tacit.learned_policy import load_policy

        if epsilon is not None:
            raise InvalidInput("evaluating by a result costs nothing: leave --epsilon out")
        mapped = read_mapping(task)
        release, bare = read_release(log, mapped), load_policy(policy).policy
        interval = value_by_release(mapped, release, bare, 0.05)
        if as_json:
            print(json.dumps({"by": "release", "values": values_json({"policy": interval})}))
            return
        say(f"value of the policy: {interval_text(interval)}")
        say("  by the release; nothing was charged")
        return
    if not log.startswith("minari:") and not Path(log).exists():
        raise InvalidInput(
            f"there is no {log}: name a log, or the folder that tacit offline --out wrote"
        )
    if epsilon is None:
        raise InvalidInput(
            "weighing a log is a release of its own, which is charged: say --epsilon; or name the "
            "folder that tacit offline --out wrote, which costs nothing"
        )
    drawn |= {"epsilon": epsilon, **({} if delta is None else {"delta": delta})}
    made = evaluate(log, policy, task, **drawn)
    if as_json:
        print(json.dumps(made.to_json()))
        return
    say(f"value of the policy: {interval_text(made.interval)}")
    say(f"  by importance weights, cut at {made.most:.3g}")
    for line in made.exact_counts.lines(read_mapping(task)):
        say(f"  {line}")
    _privacy(say, made.guarantee)


TITLES = {
    "policy": "value of the policy",
    "behaviour": "value of what was done before",
    "difference": "the policy above what was done before",
}


def interval_text(interval: Interval | None) -> str:
    """An interval in words."""
    if interval is None:
        return "not told by this release"
    ends = f"{interval.low:.4g} to {interval.high:.4g}"
    return f"{interval.value:.4g}, 95% interval {ends} (over who is in the log, and the noise)"


def _privacy(say: Callable[..., None], guarantee: Guarantee) -> None:
    say("Privacy", style="bold")
    for line in guarantee.statement().split("\n"):
        say(f"  {line}")
