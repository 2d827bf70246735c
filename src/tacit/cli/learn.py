"""``tacit learn``: an agent on an environment that can be played, and whose truth nobody knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as given
from tacit.cli.run import one_interrupt, perform
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.experiment_spec import Modules, Named


@given.on_case
def learn(
    case: given.Case,
    rule: given.Rule,
    users: Annotated[int, given.count("Users, one episode each.")] = 10_000,
    seeds: Annotated[int, given.count("Number of independent runs.")] = 4,
    seed: given.Seed = 0,
    rewards: Annotated[
        str, typer.Option(metavar="LOW,HIGH", help="Least and largest reward of one step.")
    ] = "0,1",
    returns: Annotated[
        str | None,
        typer.Option(metavar="LOW,HIGH", help="Least and largest return of an episode."),
    ] = None,
    horizon: Annotated[
        int | None, given.count("Steps of an episode (default: the environment's time limit).")
    ] = None,
    bins: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Cuts of continuous observations: [1, [-0.5, 0.5], 10]."),
    ] = None,
    module: Annotated[
        Path | None,
        typer.Option(metavar="FILE.py", help="File that registers PROBLEM, or has it as a name."),
    ] = None,
    states: Annotated[int | None, given.count("States, of a function that plays.")] = None,
    actions: Annotated[int | None, given.count("Actions, of a function that plays.")] = None,
    noise: Annotated[
        str, typer.Option(metavar="WORD", help="simulated, or secure: takes no seed.")
    ] = "simulated",
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for curves, manifest and plot.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the result in --out.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw returns into a file.")
    ] = None,
    as_json: given.Json = False,
) -> None:
    """Let an agent learn an environment whose truth nobody knows; returns instead of regret.

    PROBLEM is gym:ID, any Gymnasium environment with discrete observations and actions (--bins cuts
    continuous ones; tacit-search takes any and needs --returns), or a name in the file --module: an
    environment, a function without arguments that makes one, or a function play(policy, rng) that
    plays one episode. -P goes to gymnasium.make. Interrupted, it keeps what was done and exits with
    status 130; with --out, tacit run --resume goes on.

    Example: tacit learn gym:FrozenLake-v1 psrl --users 2e3 --horizon 30
    """
    from tacit.experiment_spec import ExperimentSpec

    said: dict[str, Any] = {"horizon": horizon, "states": states, "actions": actions}
    said["rewards"] = _range(rewards, "--rewards", "reward of one step")
    said["returns"] = (
        None if returns is None else _range(returns, "--returns", "return of an episode")
    )
    said["bins"] = None if bins is None else _cuts(bins)
    with one_interrupt():
        spec = ExperimentSpec(
            problem=_named(case, module),
            modules=_registering(case, module),
            agent=case.named_agent(),
            episodes=users,
            runs=seeds,
            seed=seed,
            participation=rule.rule(),
            environment={name: value for name, value in said.items() if value is not None},
            noise=noise,  # type: ignore[arg-type]
        )
        perform(spec, out, plot, overwrite=overwrite, as_json=as_json)


def _named(case: given.Case, module: Path | None) -> Named:
    """What is played, by its id or by its name in a file."""
    from tacit.experiment import refuse_swapped
    from tacit.experiment_spec import Named

    refuse_swapped(case.problem_name, case.agent_name)
    options = given.assignments(case.problem_parameters or (), "-P")
    if case.problem_name.startswith("gym:"):
        read = {key: given.read(text, key, Any) for key, text in options.items()}
        return Named(f"play:{case.problem_name.removeprefix('gym:')}", read)
    if module is None:
        raise InvalidInput(
            f"{case.problem_name!r} is not something to play: name a Gymnasium environment as "
            "gym:ID, or give --module FILE.py and a name in that file; problems with known tables "
            "are for tacit run"
        )
    return Named(f"{module.resolve()}:{case.problem_name}", dict(options))


def _registering(case: given.Case, module: Path | None) -> Modules:
    """A file that registers an environment by an id."""
    from tacit.experiment_spec import Modules

    if module is None or not case.problem_name.startswith("gym:"):
        return Modules()
    return Modules.find(module.resolve().parent, (module.stem,))


def _cuts(bins: str) -> Any:
    try:
        return json.loads(bins)
    except ValueError:
        raise InvalidInput(
            f"--bins {bins!r}, but it must look like [1, 1, [-0.1, 0, 0.1], 10]: for every "
            "coordinate a number of cells or the edges between them"
        ) from None


def _range(text: str, option: str, what: str) -> tuple[float, float]:
    low, comma, high = text.partition(",")
    try:
        return given.real(low), given.real(high)
    except given.Unreadable:
        raise InvalidInput(
            f"{option} {text!r}, but it must be the least and the largest {what}, for example 0,1"
        ) from None
