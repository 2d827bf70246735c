"""``tacit offline``: a private policy from a log; ``tacit evaluate``: what a policy is worth."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as given
from tacit.cli.display import speaker
from tacit.errors import InvalidInput, need

if TYPE_CHECKING:
    from tacit.privacy.guarantee import Guarantee
    from tacit.util.intervals import Interval

LogFile = Annotated[
    str, typer.Argument(metavar="LOG", help="A .parquet or .csv file, a folder of them, minari:ID.")
]
TaskFile = Annotated[
    Path, typer.Option("--task", metavar="TASK.toml", help="The mapping; --init writes one.")
]
Epsilon = Annotated[
    float | None, given.number("Privacy asked for, per person (Minari: per episode).")
]
Delta = Annotated[float, given.number("Likewise.")]
LedgerFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where charges are kept (default: NAME.ledger by the task)."),
]
Simulated = Annotated[
    bool, typer.Option("--simulated", help="Seeded noise, for studies: protects nobody.")
]


def offline(
    log: LogFile,
    task: TaskFile = Path("task.toml"),
    agent: Annotated[
        str, typer.Option(metavar="NAME", help="tacit-offline, dp-apvi or dp-vapvi.")
    ] = "tacit-offline",
    agent_parameters: Annotated[
        given.Pairs, typer.Option("-A", metavar="KEY=VALUE", help="Agent parameter.")
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    ledger: LedgerFile = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for policy, values and page.")
    ] = None,
    init: Annotated[
        bool, typer.Option("--init", help="Write an example to --task and read nothing.")
    ] = False,
    simulated: Simulated = False,
    seed: given.Seed = 0,
    as_json: given.Json = False,
) -> None:
    """Learn a policy from a log, with one private release about all people in it.

    The ledger of the data set is charged before a row is read, and a release beyond its budget is
    refused. Later nothing is: whatever the rows say, there is a release. How many rows and values
    do not fit the mapping appears on this screen only, exactly: it is in no file and not in --json.
    Try a mapping with --simulated first, which charges nothing.

    Example: tacit offline log.csv --task task.toml --init

    Example: tacit offline log.csv --task task.toml --epsilon 1 --out result
    """
    if init:
        text = resources.files("tacit.logs").joinpath("example.toml").read_text("utf-8")
        given.write_new(task, text)
        print(f"wrote {task}; say in it what the columns of {log} mean")
        return
    from tacit.logs.files import make_room, save
    from tacit.logs.offline import offline as learn

    if epsilon is None:
        raise InvalidInput("--epsilon is missing: there is no default for privacy")
    if out is not None:
        need("a page about a log", "report")
        make_room(out)
    parameters = {
        key: given.read(text, key, Any)
        for key, text in given.assignments(agent_parameters or (), "-A").items()
    }
    result = learn(
        log,
        task,
        agent,
        epsilon=epsilon,
        delta=delta,
        ledger=ledger,
        noise="simulated" if simulated else "secure",
        seed=seed,
        parameters=parameters,
    )
    files = []
    if out is not None:
        from tacit_lab.report.log_page import write_page

        files = [*save(result, out), write_page(result, out / "page.html")]
    if as_json:
        print(json.dumps(result.to_json()))
        return
    say = speaker()
    say(f"{agent} on {result.mapped.name}", style="bold")
    for line in result.told.lines(result.mapped):
        say(f"  {line}")
    for note in result.mapped.notes:
        say(f"  note: {note}")
    for name, interval in result.values.items():
        say(f"  {TITLES[name]}: {said(interval)}")
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


def evaluate(
    log: Annotated[
        str,
        typer.Argument(metavar="LOG", help="A log (charged), or what offline --out wrote (free)."),
    ],
    policy: Annotated[Path, typer.Argument(metavar="POLICY", help="A policy file.")],
    task: TaskFile = Path("task.toml"),
    epsilon: Epsilon = None,
    delta: Delta = 1e-5,
    ledger: LedgerFile = None,
    simulated: Simulated = False,
    seed: given.Seed = 0,
    as_json: given.Json = False,
) -> None:
    """What a policy is worth: by a release that was made before, or by weighing a log anew.

    By the folder of a result it costs nothing more. By a log with propensities it is a release of
    its own, charged to the ledger of the data set.

    Example: tacit evaluate result other-policy.json --task task.toml

    Example: tacit evaluate log.csv other-policy.json --task task.toml --epsilon 0.5
    """
    from tacit.logs import offline as run
    from tacit.logs.files import RELEASE, stored_release
    from tacit.logs.mapping import read_mapping

    say = speaker()
    if (Path(log) / RELEASE).exists():
        from tacit.learned_policy import load_policy

        if epsilon is not None:
            raise InvalidInput("evaluating by a result costs nothing: leave --epsilon out")
        mapped = read_mapping(task)
        release, bare = stored_release(log, mapped), load_policy(policy).policy
        interval = run.worth_by_release(mapped, release, bare, 0.05)
        if as_json:
            found = run.values_json({"policy": interval})
            print(json.dumps({"by": "release", "values": found}))
            return
        say(f"value of the policy: {said(interval)}")
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
    noise = "simulated" if simulated else "secure"
    options = {"epsilon": epsilon, "delta": delta, "ledger": ledger, "noise": noise, "seed": seed}
    made = run.evaluate(log, policy, task, **options)  # type: ignore[arg-type]
    if as_json:
        print(json.dumps(made.to_json()))
        return
    say(f"value of the policy: {said(made.interval)}")
    say(f"  by importance weights, cut at {made.most:.3g}")
    for line in made.told.lines(read_mapping(task)):
        say(f"  {line}")
    _privacy(say, made.guarantee)


TITLES = {
    "policy": "value of the policy",
    "behaviour": "value of what was done before",
    "difference": "the policy above what was done before",
}


def said(interval: Interval | None) -> str:
    """An interval in words."""
    if interval is None:
        return "not told by this release"
    ends = f"{interval.low:.4g} to {interval.high:.4g}"
    return f"{interval.value:.4g}, 95% interval {ends} (over who is in the log, and the noise)"


def _privacy(say: Callable[..., None], guarantee: Guarantee) -> None:
    say("Privacy", style="bold")
    for line in guarantee.statement().split("\n"):
        say(f"  {line}")
