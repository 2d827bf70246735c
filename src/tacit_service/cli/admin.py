"""``tacit admin``: what the operator of a deployment does beside serving it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.display import Told, tell
from tacit.cli.options import DeploymentFile, Json, command, count, file, flag, one_of, whole, word
from tacit.errors import InvalidInput
from tacit_service.cli.rehearse import rehearse
from tacit_service.cli.serve import facts_of, write_tokens

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.intake.task_state import Word

MOST_TOKENS = 1_000_000
"""In one call."""
TIMING = ("delay", "grace", "accepted_versions", "sending", "taking")
ACTIONS: dict[str, Word] = {"pause": "paused", "resume": "open", "close": "closed"}

admin = typer.Typer(add_completion=False, rich_markup_mode=None)


def _one_of(metavar: str, *words: str) -> Any:
    """An argument that is one of a few words."""
    help = f"{', '.join(words[:-1])} or {words[-1]}"
    return typer.Argument(metavar=metavar, parser=one_of(*words), help=help)


@admin.callback(invoke_without_command=True)
def root(context: typer.Context) -> None:
    """Check, rehearse and look after a deployment."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@admin.command()
def check(path: DeploymentFile, as_json: Json = False) -> None:
    """Say what would run and be guaranteed; run and touch nothing.

    Example: tacit admin check coach.toml
    """
    from tacit.cli.guarantee import lines_of
    from tacit.forecast import forecast
    from tacit_service.config.arrival_rate import impossible, pacing, sentences
    from tacit_service.config.deployment import Deployment
    from tacit_service.config.experiment import outlook

    deployment = Deployment.load(path)
    if wrong := impossible(deployment):
        raise InvalidInput(f"{path}: " + "; and ".join(wrong))
    expected, paced = forecast(deployment.bound), pacing(deployment)
    verdict, planned = outlook(path, deployment)
    checked = {
        "task_id": deployment.task_id,
        "model": deployment.model,
        "guarantee": deployment.guarantee.to_json(),
        "returning": deployment.returning,
        "timing": {"duration": deployment.task.duration}
        | {name: getattr(deployment, name) for name in TIMING},
        "pace": None if paced is None else asdict(paced),
        "restoring": deployment.restoring,
        "forecast": expected.to_json(),
        "plan": planned,
    }
    at_pace = [] if paced is None else sentences(paced, deployment.task.users)
    facts = [*facts_of(deployment), *(f"{line}." for line in at_pace)]
    lines = [*facts, *lines_of(deployment.guarantee, expected), verdict]
    head = f"{path} is a valid deployment; it would run:"
    tell(Told(checked, [head, *(f"  {line}" for line in lines)]), as_json=as_json)


@admin.command()
def verify(deployment: DeploymentFile, as_json: Json = False) -> None:
    """Work every policy out again from kept reports.

    Status 1 if one of them differs.

    Example: tacit admin verify coach.toml
    """
    with _opened(deployment) as collector:
        verdict = collector.verify()
    tell(Told(verdict.to_json(), [str(verdict)]), as_json=as_json)
    if not verdict.sound:
        raise typer.Exit(1)


@admin.command()
def consent(deployment: DeploymentFile) -> None:
    """Print what to tell people who take part.

    Example: tacit admin consent coach.toml
    """
    from tacit.privacy import sentences
    from tacit_service.config.deployment import Deployment

    read = Deployment.load(deployment, stored=False)
    text = sentences.consent(
        read.guarantee,
        name=read.name,
        steps=read.task.horizon,
        kept=read.settings.storage.keep_reports,
        searched=read.ticketed,
    )
    print(text)


@dataclass(frozen=True)
class TokenOptions:
    """What ``tacit admin tokens`` takes."""

    deployment: DeploymentFile
    action: Annotated[str, _one_of("ACTION", "issue", "list", "revoke")]
    number: Annotated[
        int | None,
        typer.Argument(metavar="[NUMBER]", parser=whole, help="Of the token to revoke, see list."),
    ] = None
    role: Annotated[Any, word("device or operator.", "device", "operator")] = "device"
    count: Annotated[int, count("How many to issue.")] = 1
    label: Annotated[str, typer.Option(metavar="TEXT", help="A note kept with them.")] = ""
    out: Annotated[Path | None, file("Write them here, one per line.", None)] = None
    show: Annotated[bool, flag("--show", "Print them instead.")] = False
    as_json: Json = False


@admin.command()
@command(TokenOptions)
def tokens(request: TokenOptions) -> None:
    """Issue, list or revoke tokens. A token is shown once; the database keeps its digest.

    A running service notices at once.

    Example: tacit admin tokens coach.toml issue --role device --count 1000 --out tokens.txt
    """
    from tacit.validate import integer

    with _opened(request.deployment) as collector:
        if request.action == "list":
            result = _listed(collector)
        elif request.action == "revoke":
            result = _revoked(collector, request.number)
        else:
            integer(request.count, "--count", low=1, high=MOST_TOKENS)
            if (request.out is None) != request.show:
                raise InvalidInput(
                    "say where new tokens go: --out FILE, which only you can read, or --show"
                )
            result = _issued(collector, request)
        tell(result, as_json=request.as_json)


@admin.command()
def state(
    deployment: DeploymentFile,
    action: Annotated[str, _one_of("ACTION", *ACTIONS)],
    yes: Annotated[bool, flag("--yes", "Needed to close: a closed task stays closed.")] = False,
    as_json: Json = False,
) -> None:
    """Pause a task, let it go on, or close it for good. A running service follows at once.

    While it is paused devices keep their reports, nothing is planned, and no report becomes too
    old. A closed task takes no report; its policies stay up.

    Example: tacit admin state coach.toml pause
    """
    from tacit_service.intake.task_state import SAID

    if action == "close" and not yes:
        raise InvalidInput("a closed task cannot be opened again; if you mean it, add --yes")
    with _opened(deployment) as collector:
        now = collector.set_state(ACTIONS[action])
    tell(Told({"state": now.word}, [SAID[now.word]]), as_json=as_json)


@admin.command()
def erase(
    deployment: DeploymentFile,
    what: Annotated[str, _one_of("WHAT", "kept", "all")],
    yes: Annotated[bool, flag("--yes", "Needed for all: it ends the task for good.")] = False,
    as_json: Json = False,
) -> None:
    """Erase what can be erased of people's data; say what cannot.

    kept: reports that were absorbed and kept for verify; learning goes on. all: also what waits
    and what adds up, and the key file; the task is over, and what was published stays published.
    One person's report cannot be taken out of sums. Stop the service first.

    Example: tacit admin erase coach.toml kept
    """
    from tacit_service.storage import erase as erasing

    if what == "all" and not yes:
        raise InvalidInput("this ends the task and cannot be undone; if you mean it, add --yes")
    with _opened(deployment) as collector:
        done = erasing.erase(collector, "all" if what == "all" else "kept")
    lines = ["\n  ".join(("erased:", *done.erased)), "\n  ".join(("not erased:", *done.remains))]
    tell(Told(asdict(done), lines), as_json=as_json)


@admin.command()
def backup(
    deployment: DeploymentFile,
    to: Annotated[Path, typer.Argument(metavar="DEST", help="New file.")],
    drill: Annotated[
        bool, flag("--drill", "Restore the copy in a scratch place and read it.")
    ] = False,
    key: Annotated[bool, flag("--key", "Copy the key file too; keep the two apart.")] = False,
    as_json: Json = False,
) -> None:
    """Copy a task's database while it runs, never the witness.

    Example: tacit admin backup coach.toml coach-copy.db --drill
    """
    from tacit_service.config.deployment import Deployment
    from tacit_service.storage import backup as copies

    read = Deployment.load(deployment)
    files = [str(path) for path in copies.backup(read, to, key=key)]
    outcome = copies.drill(read, to) if drill else None
    lines = [f"wrote {' and '.join(files)}", *([] if outcome is None else [str(outcome)])]
    tell(Told({"files": files, "drill": outcome and asdict(outcome)}, lines), as_json=as_json)
    if outcome is not None and outcome.problem:
        raise typer.Exit(1)


admin.command()(rehearse)


def _opened(path: Path) -> Collector:
    """The collector of a deployment file."""
    from tacit_service.collector import Collector
    from tacit_service.config.deployment import Deployment

    return Collector.open(Deployment.load(path))


def _issued(collector: Collector, request: TokenOptions) -> Told:
    asked = request.role, request.count, request.label
    if request.out is None:
        issued = collector.tokens.issue(*asked)
        return Told({"role": request.role, "tokens": issued}, issued)
    write_tokens(collector, *asked, request.out)
    wrote = {"role": request.role, "count": request.count, "file": str(request.out)}
    return Told(wrote, [f"wrote {request.count:,} tokens to {request.out}"])


def _listed(collector: Collector) -> Told:
    known, lines = collector.tokens.list(), []
    for token in known:
        state = f"{token.used:,} reports" if token.revoked_at is None else "revoked"
        lines.append(f"{token.id:>8}  {token.role:<8}  {state:<12}  {token.label}".rstrip())
    return Told({"tokens": [asdict(token) for token in known]}, lines)


def _revoked(collector: Collector, number: int | None) -> Told:
    from tacit.validate import integer

    if number is None:
        raise InvalidInput("say which token: tacit admin tokens FILE revoke NUMBER (see list)")
    integer(number, "NUMBER", low=0, high=2**31 - 1)
    if not collector.tokens.revoke(number):
        raise InvalidInput(f"there is no token {number}; see: tacit admin tokens FILE list")
    return Told({"revoked": number}, [f"token {number} is revoked"])
