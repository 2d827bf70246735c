"""The ``tacit`` command: options here, work in the modules beside it, imported when needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

from tacit._version import __version__
from tacit.errors import TacitError

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
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Folder for the plot and the results.")
    ] = Path("tacit-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """The two-minute tour: watch agents learn, see their regret, read what was guaranteed.

    Example: tacit demo
    """
    from tacit.cli.demo import run_demo

    run_demo(out, as_json=as_json)


@app.command("list")
def list_(
    what: Annotated[str, typer.Argument(help="agents or problems", metavar="WHAT")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List agents or problems with their parameters and defaults.

    Example: tacit list agents
    """
    from tacit.cli.listing import print_list

    print_list(what, as_json=as_json)


@app.command()
def run(
    problem: Annotated[
        str, typer.Argument(metavar="PROBLEM", help="Problem name, see: tacit list problems")
    ],
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help="Agent name, see: tacit list agents")
    ],
    problem_parameters: Annotated[
        list[str] | None, typer.Option("-P", metavar="KEY=VALUE", help="Problem parameter.")
    ] = None,
    agent_parameters: Annotated[
        list[str] | None, typer.Option("-A", metavar="KEY=VALUE", help="Agent parameter.")
    ] = None,
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon", metavar="NUMBER", help="Privacy asked for (private agents only)."
        ),
    ] = None,
    delta: Annotated[
        str | None,
        typer.Option("--delta", metavar="NUMBER", help="Privacy asked for (private agents only)."),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option("--calibration", metavar="WORD", help="tight or paper (private agents only)."),
    ] = None,
    episodes: Annotated[
        str, typer.Option("--episodes", metavar="N", help="Users, one episode each.")
    ] = "1e4",
    seeds: Annotated[
        str, typer.Option("--seeds", metavar="N", help="Number of independent runs.")
    ] = "4",
    seed: Annotated[
        str, typer.Option("--seed", metavar="N", help="Root of the random streams.")
    ] = "0",
    workers: Annotated[
        str | None, typer.Option("--workers", metavar="N", help="Threads (default: one per core).")
    ] = None,
    checkpoints: Annotated[
        str,
        typer.Option(
            "--checkpoints", metavar="N", help='"log", or n to record every n-th episode.'
        ),
    ] = "log",
    reveal: Annotated[
        list[str] | None,
        typer.Option("--reveal", metavar="FACT", help="Fact told to the learner, e.g. reward."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Folder for curves, manifest and plot."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a result that is already in --out.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw regret into a file.")
    ] = None,
    log_log: Annotated[bool, typer.Option("--log-log", help="Logarithmic axes.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run an agent on a problem and score it exactly against the optimum.

    Example: tacit run river-swim psrl --episodes 1e5 --seeds 4
    """
    from tacit.cli.run import RunOptions, run_and_print

    run_and_print(
        RunOptions(
            problem=problem,
            agent=agent,
            problem_parameters=problem_parameters or [],
            agent_parameters=agent_parameters or [],
            privacy={"epsilon": epsilon, "delta": delta, "calibration": calibration},
            episodes=episodes,
            seeds=seeds,
            seed=seed,
            workers=workers,
            checkpoints=checkpoints,
            reveal=reveal or [],
            out=out,
            overwrite=overwrite,
            plot=plot,
            log_log=log_log,
            as_json=as_json,
        )
    )


def main() -> None:
    """Entry point: a person's mistake is one line on stderr and status 2, never a traceback."""
    try:
        status = app(prog_name="tacit", standalone_mode=False)
    except TacitError as error:
        status = _complain(str(error))
    except TyperException as error:
        status = _complain(f"{error.format_message().rstrip('.')} (see tacit --help)")
    except BrokenPipeError:
        sys.stderr.close()
        status = 1
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str) -> int:
    print(f"tacit: {' '.join(message.split())}", file=sys.stderr)
    return 2
