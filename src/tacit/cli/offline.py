"""``tacit offline``: a private policy from a log, or what a policy is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli import options
from tacit.cli.display import Line, Told, privacy_lines, tell
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.agents.base import Agent
    from tacit.logs.offline import OfflineResult
    from tacit.util.intervals import Interval


TASK = Path("task.toml")
_LEARNER = "Who learns (default: tacit-offline; see tacit list agents)."
_EPSILON = "Privacy asked for, per person (Minari: per episode)."
_LEDGER = "Where charges are kept (default: NAME.ledger by the task)."


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """What ``tacit offline`` takes."""

    log: str = options.argument("LOG", "A .parquet or .csv file, a folder of them, minari:ID.")
    task: Path = options.path("The mapping; --init writes one.", "Facts", "TASK.toml", TASK)
    agent: str | None = options.option(_LEARNER, "Facts", "NAME", None, None)
    agent_facts: options.AgentFacts = None
    epsilon: float | None = options.number(_EPSILON, "Facts", None)
    delta: float | None = options.number("Likewise (default: 1e-5).", "Facts", None)
    ledger: Path | None = options.path(_LEDGER, "Facts")
    policy: Path | None = options.path("Learn nothing: say what this policy is worth.", "Facts")
    out: Path | None = options.path("Folder for policy, values and release.", metavar="DIR")
    as_json: options.Json = False
    init: bool = options.switch("--init", "Write an example to --task and read nothing.")
    simulated: bool = options.switch("--simulated", "Seeded noise, for studies: protects nobody.")
    seed: int = options.count("Root of the random streams.", None, 0)


@options.command(LogOptions)
def offline(request: LogOptions) -> None:
    """Learn a policy from a log, or say what a policy is worth by it.

    There is one private release about all people in the log.

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
    log, task, policy, out = request.log, request.task, request.policy, request.out
    if request.init:
        text = resources.files("tacit.logs").joinpath("example.toml").read_text("utf-8")
        options.write_new(task, text)
        print(f"wrote {task}; say in it what the columns of {log} mean")
        return
    drawn: dict[str, Any] = {"ledger": request.ledger, "seed": request.seed}
    drawn["noise"] = "simulated" if request.simulated else "secure"
    epsilon, delta = request.epsilon, request.delta
    if policy is not None:
        if request.agent is not None or request.agent_facts or out is not None:
            raise InvalidInput(
                "with --policy nothing is learned or written: leave --agent, -A and --out out"
            )
        drawn |= {"epsilon": epsilon} | ({} if delta is None else {"delta": delta})
        tell(_evaluated(log, policy, task, drawn), as_json=request.as_json)
        return
    from tacit.logs.files import require_empty, save
    from tacit.logs.offline import offline as learn

    name = request.agent or "tacit-offline"
    learner = options.chosen_agent(name, request.agent_facts, epsilon, delta)
    if out is not None:
        require_empty(out)
    result = learn(log, task, learner, **drawn)
    files = [] if out is None else save(result, out)
    tell(Told(result.to_json(), _learned(learner, result), files), as_json=request.as_json)


def _learned(learner: Agent, result: OfflineResult) -> Iterator[str | Line]:
    """What was learned, how much of it is known, and what was promised."""
    yield Line(f"{learner.name} on {result.mapped.name}", style="bold")
    for line in result.exact_counts.lines(result.mapped):
        yield f"  {line}"
    for note in result.mapped.notes:
        yield f"  note: {note}"
    for name, interval in result.values.items():
        yield f"  {TITLES[name]}: {interval_text(interval)}"
    if result.values["difference"] is None:
        yield f"  {result.withheld}"
    whole = 100 * result.whole.value
    yield f"  first episodes recorded whole: {whole:.1f}% of the people (released)"
    for sentence in result.assumes:
        yield f"  {sentence}"
    yield from privacy_lines(result.guarantee.statement())


def _evaluated(log: str, policy: Path, task: Path, drawn: dict[str, Any]) -> Told:
    """What a policy is worth: by a release that was made before, or by weighing a log anew."""
    from tacit.logs.files import RELEASE, read_release
    from tacit.logs.mapping import read_mapping
    from tacit.logs.offline import evaluate
    from tacit.logs.values import value_by_release, values_json

    if (Path(log) / RELEASE).exists():
        from tacit.learned_policy import load_policy

        if drawn["epsilon"] is not None:
            raise InvalidInput("evaluating by a result costs nothing: leave --epsilon out")
        mapped = read_mapping(task)
        release = read_release(log, mapped)
        interval = value_by_release(mapped, release, load_policy(policy), 0.05)
        lines: list[str | Line] = [
            f"value of the policy: {interval_text(interval)}",
            "  by the release; nothing was charged",
        ]
        values = values_json({"policy": interval})
        return Told({"by": "release", "values": values}, lines)
    if not log.startswith("minari:") and not Path(log).exists():
        raise InvalidInput(
            f"there is no {log}: name a log, or the folder that tacit offline --out wrote"
        )
    if drawn["epsilon"] is None:
        raise InvalidInput(
            "weighing a log is a release of its own, which is charged: say --epsilon; or name the "
            "folder that tacit offline --out wrote, which costs nothing"
        )
    evaluation = evaluate(log, policy, task, **drawn)
    lines = [
        f"value of the policy: {interval_text(evaluation.interval)}",
        f"  by importance weights, cut at {evaluation.most:.3g}",
        *(f"  {line}" for line in evaluation.exact_counts.lines(read_mapping(task))),
        *privacy_lines(evaluation.guarantee.statement()),
    ]
    return Told(evaluation.to_json(), lines)


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
