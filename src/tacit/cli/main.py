"""The ``tacit`` command: options here, work in the modules beside it, imported when needed."""

from __future__ import annotations

import functools
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from tacit._version import __version__
from tacit.cli import options as given
from tacit.errors import TacitError

if TYPE_CHECKING:
    from tacit.cli.case import Case

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Reinforcement learning that keeps its users' secrets.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Reinforcement learning that keeps its users' secrets."""
    if version:
        print(f"tacit {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the plot.")] = Path(
        "tacit-demo"
    ),
    as_json: given.Json = False,
) -> None:
    """The two-minute tour: watch agents learn, see their regret, read what was guaranteed.

    Example: tacit demo
    """
    from tacit.cli.demo import run_demo

    run_demo(out, as_json=as_json)


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="agents, problems or figures", metavar="WHAT")],
    as_json: given.Json = False,
) -> None:
    """List agents and problems with their parameters and defaults, or figures with their times.

    Example: tacit list agents
    """
    from tacit.cli.listing import print_list

    print_list(what, as_json=as_json)


def _case(
    problem: str,
    agent: str,
    problem_parameters: list[str] | None,
    agent_parameters: list[str] | None,
    epsilon: str | None,
    delta: str | None,
    calibration: str | None,
    episodes: str,
    reveal: list[str] | None,
) -> Case:
    from tacit.cli.case import Case

    return Case(
        problem,
        agent,
        problem_parameters or [],
        agent_parameters or [],
        {"epsilon": epsilon, "delta": delta, "calibration": calibration},
        episodes,
        reveal or [],
    )


@app.command()
def run(
    problem: given.ProblemName,
    agent: given.AgentName,
    problem_parameters: given.ProblemParameters = None,
    agent_parameters: given.AgentParameters = None,
    epsilon: given.Epsilon = None,
    delta: given.Delta = None,
    calibration: given.Calibration = None,
    episodes: given.Episodes = "1e4",
    seeds: given.Seeds = "4",
    seed: given.Seed = "0",
    workers: given.Workers = None,
    checkpoints: given.Checkpoints = "log",
    reveal: given.Reveal = None,
    out: given.Out = None,
    overwrite: given.Overwrite = False,
    plot: given.Plot = None,
    log_log: given.LogLog = False,
    as_json: given.Json = False,
) -> None:
    """Run an agent on a problem and score it exactly against the optimum.

    Example: tacit run river-swim psrl --episodes 1e5 --seeds 4
    """
    from tacit.cli.run import RunOptions, run_and_print

    case = _case(
        problem,
        agent,
        problem_parameters,
        agent_parameters,
        epsilon,
        delta,
        calibration,
        episodes,
        reveal,
    )
    run_and_print(
        case,
        RunOptions(seeds, seed, workers, checkpoints, out, overwrite, plot, log_log, as_json),
    )


@app.command()
def guarantee(
    problem: given.ProblemName,
    agent: given.AgentName,
    problem_parameters: given.ProblemParameters = None,
    agent_parameters: given.AgentParameters = None,
    epsilon: given.Epsilon = None,
    delta: given.Delta = None,
    calibration: given.Calibration = None,
    episodes: given.Episodes = "1e4",
    reveal: given.Reveal = None,
    diff: Annotated[
        bool, typer.Option("--diff", help="Compare two statements in JSON files.")
    ] = False,
    as_json: given.Json = False,
) -> None:
    """What would be guaranteed: noise scales, the true epsilon, and a forecast. Runs nothing.

    With --diff, two files that hold a statement are compared field by field instead.

    Example: tacit guarantee river-swim ldp-obi --epsilon 1 --episodes 1e5

    Example: tacit guarantee --diff A.json B.json
    """
    from tacit.cli.guarantee import print_difference, print_guarantee

    if diff:
        print_difference(Path(problem), Path(agent), as_json=as_json)
        return
    case = _case(
        problem,
        agent,
        problem_parameters,
        agent_parameters,
        epsilon,
        delta,
        calibration,
        episodes,
        reveal,
    )
    print_guarantee(case, as_json=as_json)


@app.command()
def audit(
    problem: given.ProblemName,
    agent: given.AgentName,
    problem_parameters: given.ProblemParameters = None,
    agent_parameters: given.AgentParameters = None,
    epsilon: given.Epsilon = None,
    delta: given.Delta = None,
    calibration: given.Calibration = None,
    participations: given.Participations = "1",
    trials: given.Trials = "1e6",
    seconds: given.AuditSeconds = "180",
    confidence: given.Confidence = "0.95",
    seed: given.Seed = "0",
    service: given.ServicePath = False,
    as_json: given.Json = False,
) -> None:
    """Try to refute the guarantee: run the mechanism on worst-case neighbours and bound epsilon.

    Exits with status 1 if the claim is refuted, and says so where nothing could be concluded.
    Example: tacit audit random-mdp ldp-obi --epsilon 1
    """
    from tacit.cli.audit import AuditOptions, audit_and_print

    case = _case(
        problem,
        agent,
        problem_parameters,
        agent_parameters,
        epsilon,
        delta,
        calibration,
        "1",
        None,
    )
    how = AuditOptions(participations, trials, seconds, confidence, seed, service)
    if not audit_and_print(case, how, as_json=as_json):
        raise typer.Exit(1)


@app.command()
def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="What to run.")],
    init: Annotated[
        bool, typer.Option("--init", help="Write an example to SPEC.toml and run nothing.")
    ] = False,
    workers: given.Processes = None,
    ray: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help='A Ray cluster instead, or "local".')
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on in a folder that holds a sweep.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder (default: tacit-sweeps/SPEC).")
    ] = None,
    as_json: given.Json = False,
) -> None:
    """Run every combination that a file lists, and write the results as tables.

    Finished tasks are never run again: interrupted or killed, the same command with --resume goes
    on, and the results are those of a run without interruption. Exits with status 1 if tasks
    failed; they are reported, and --resume tries them again.

    Example: tacit sweep study.toml --init; tacit sweep study.toml
    """
    from tacit.cli.sweep import SweepOptions, sweep_and_print, write_example

    if init:
        write_example(spec)
    else:
        sweep_and_print(spec, SweepOptions(workers, ray, resume, out, as_json))


@app.command()
def serve(
    deployment: given.DeploymentFile,
    init: Annotated[bool, typer.Option("--init", help="Write a commented example here.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Say what would run and be guaranteed; run nothing.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Work out every policy again from kept reports.")
    ] = False,
    consent: Annotated[
        bool, typer.Option("--consent", help="Print what to tell people who take part.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Instead of the file's.")
    ] = None,
    port: Annotated[
        str | None, typer.Option(metavar="N", help="Instead of the file's; 0 takes a free one.")
    ] = None,
    workers: Annotated[
        str, typer.Option(metavar="N", help="Processes that take uploads (PostgreSQL only).")
    ] = "1",
    as_json: given.Json = False,
) -> None:
    """Collect reports over HTTP and learn from them, as one TOML file describes.

    Example: tacit serve coach.toml --init && tacit serve coach.toml
    """
    from tacit.cli.serve import ServeOptions, serve_or_say

    serve_or_say(
        deployment, ServeOptions(init, check, verify, consent, host, port, workers, as_json)
    )


@app.command()
def fleet(
    deployment: given.DeploymentFile,
    users: Annotated[str, typer.Option(metavar="N", help="Count so many users in all.")] = "1000",
    workers: Annotated[
        str, typer.Option(metavar="N", help="People on their way at the same time.")
    ] = "8",
    address: Annotated[
        str | None, typer.Option(metavar="URL", help="Of the service, instead of the file's.")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Tokens, one per line.")
    ] = None,
    seed: given.Seed = "0",
    as_json: given.Json = False,
) -> None:
    """Send simulated devices to a running service, and score its policies against the truth.

    Stopped and started again, it goes on with the people who were not counted yet.

    Example: tacit fleet coach.toml --users 1e4 --tokens tokens.txt
    """
    from tacit.cli.fleet import FleetOptions, run_fleet

    run_fleet(deployment, FleetOptions(users, workers, address, tokens, seed, as_json))


@app.command()
def tokens(
    deployment: given.DeploymentFile,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="issue, list or revoke")],
    number: Annotated[
        str | None, typer.Argument(metavar="[NUMBER]", help="Of the token to revoke, see list.")
    ] = None,
    role: Annotated[str, typer.Option(metavar="WORD", help="device or operator.")] = "device",
    count: Annotated[str, typer.Option(metavar="N", help="How many to issue.")] = "1",
    label: Annotated[str, typer.Option(metavar="TEXT", help="A note kept with them.")] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write them here, one per line.")
    ] = None,
    as_json: given.Json = False,
) -> None:
    """Issue, list or revoke tokens. A token is shown once; the database keeps its digest.

    Example: tacit tokens coach.toml issue --role device --count 1000 --out tokens.txt
    """
    from tacit.cli.tokens import TokenOptions, manage

    manage(deployment, action, TokenOptions(number, role, count, label, out, as_json))


@app.command()
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a sweep, of a run, or of runs.")
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Page to write (default: DIR/report.html).")
    ] = None,
    as_json: given.Json = False,
) -> None:
    """Results as one self-contained HTML file: curves, price of privacy, guarantees.

    Example: tacit report results/
    """
    from tacit.cli.report import report_and_print

    report_and_print(folder, out, as_json=as_json)


@functools.cache
def add_commands() -> None:
    """Commands of other packages: functions for Typer, named by their entry points."""
    for point in entry_points(group="tacit.commands"):
        try:
            app.command(point.name)(point.load())
        except ImportError as error:  # what is left of a removed package must not stop the others
            print(f"tacit: no command {point.name}: {error}", file=sys.stderr)


def main() -> None:
    """Entry point: a person's mistake is one line on stderr and status 2, never a traceback."""
    add_commands()
    try:
        status = app(prog_name="tacit", standalone_mode=False)
    except TacitError as error:
        status = _complain(str(error))
    except TyperException as error:
        status = _complain(f"{error.format_message().rstrip('.')} (see tacit --help)")
    except BrokenPipeError:
        sys.stderr.close()
        status = 1
    except MemoryError:
        status = _complain("not enough memory: choose smaller sizes, fewer seeds or checkpoints")
    except OSError as error:  # a full disk, a folder that went away
        status = _complain(f"{error.filename or 'output'}: {error.strerror or error}")
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str) -> int:
    print(f"tacit: {' '.join(message.split())}", file=sys.stderr)
    return 2
