"""``tacit learn``: an agent on an environment that can be played, and whose truth nobody knows."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli import options as given
from tacit.cli.display import progress_bar, speaker
from tacit.cli.run import one_interrupt, warn_of_few
from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from tacit.simulation import LearnResult


@given.on_case
def learn(
    case: given.Case,
    rule: given.Rule,
    context: typer.Context,
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
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Go on with an unfinished learn --out DIR; needs no more."
        ),
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
    status 130; with --out it can go on.

    Example: tacit learn gym:FrozenLake-v1 psrl --users 2e3 --horizon 30
    """
    from tacit.cli import resuming
    from tacit.problems.classic_control import CLASSIC
    from tacit.simulation.learning import learn as learn_it
    from tacit.simulation.learning import played
    from tacit.simulation.plot import check_target
    from tacit.simulation.resume import forget

    how: dict[str, Any] = {"command": "learn", "users": users, "seeds": seeds, "seed": seed}
    how |= {
        "rewards": rewards,
        "returns": returns,
        "horizon": horizon,
        "states": states,
        "actions": actions,
    }
    how |= {**dataclasses.asdict(rule), "noise": noise, "bins": bins}
    how |= {"module": None if module is None else str(module.resolve())}
    with one_interrupt():
        if resume is not None:
            if out is not None:
                raise InvalidInput("--resume goes on in its own folder; leave --out out")
            saved = resuming.recalled(resume, {**dataclasses.asdict(case), **how}, context)
            how = {name: saved.pop(name) for name in how}
            case, out, overwrite = given.Case(**saved), resume, True
        chosen = {**dataclasses.asdict(case), **how}
        del how["command"]
        rule = given.Rule(**{name: how.pop(name) for name in dataclasses.asdict(rule)})
        how["participations"] = rule.rule()
        file, cuts = how.pop("module"), how.pop("bins")
        found = _environment(case, None if file is None else Path(file), cuts)
        agent = case.agent()
        known = "episodic" in agent.families and case.problem_name.removeprefix("gym:") in CLASSIC
        known = known and not case.problem_parameters and cuts is None
        environment = case.problem_name if known else found
        if plot is not None:
            check_target(plot)
        if out is not None and resume is None:
            resuming.begin(out, chosen, overwrite=overwrite)
        kept = None if out is None else out / resuming.PROGRESS
        title = f"{agent.name} on {case.problem_name}"
        how["rewards"] = _range(how["rewards"], "--rewards", "reward of one step")
        if how["returns"] is not None:
            how["returns"] = _range(how["returns"], "--returns", "return of an episode")
        if "tabular" in agent.families:
            facts = {name: how[name] for name in ("rewards", "horizon", "states", "actions")}
            told = played(environment, **facts)
            warn_of_few(told, agent, how["users"], how["participations"], how["users"])
        with progress_bar(title, how["users"], "return") as progress:
            result = learn_it(environment, agent, **how, progress=progress, resume=kept)
        files = [] if out is None else [result.save(out, overwrite=overwrite)]
        if kept is not None and not result.interrupted:
            forget(kept)
        pictures = [plot] if out is None else [out / "returns.png", plot]
        if result.completed:
            files += [result.plot(name) for name in pictures if name is not None]
        if as_json:
            print(json.dumps(result.to_json()))
        else:
            say = speaker()
            _tell(say, result)
            for written in files:
                say(f"wrote {written}")
            if out is not None and result.interrupted:
                say(f"go on with: tacit learn --resume {out}")
        if result.interrupted:
            raise typer.Exit(130)


def _tell(say: Callable[..., None], result: LearnResult) -> None:
    """The result in words."""
    facts = result.problem
    say(f"{result.agent['name']} on {facts['name']}", style="bold")
    if facts["family"] == "episodic":
        low, high = facts["returns"]
        say(
            f"  {facts['policy parameters']} parameters, horizon {facts['horizon']}, returns from "
            f"{low:g} to {high:g}"
        )
    else:
        low, high = facts["rewards"]
        say(
            f"  {facts['states']} states (the last one: the episode has ended), {facts['actions']} "
            f"actions, horizon {facts['horizon']}, rewards from {low:g} to {high:g}"
        )
    if result.interrupted:
        say(
            f"  interrupted at {result.completed:,} of {result.requested_episodes:,} users; what "
            "follows is that part"
        )
    if result.completed:
        say(f"  return: {result.earned()}")
    say(f"  tested on {result.tests['episodes']} fresh episodes: {result.tested()}")
    for line in result.per_run() if len(result.policies) > 1 else ():
        say(f"    {line}")
    if result.warning:
        say(f"  {result.warning}", style="bold")
    say(f"  {result.note}")
    say(f"  {result.seconds:.2f} s, {result.episodes_per_second:,.0f} users/s over all runs")
    for note in result.agent["notes"]:
        say(f"  note: {note}")
    say("Privacy", style="bold")
    for line in result.guarantee.statement().split("\n"):
        say(f"  {line}")


def _environment(case: given.Case, module: Path | None, bins: str | None) -> Any:
    """What is played, by its id or by its name in a file."""
    from tacit.forecast import in_order
    from tacit.problems.gymnasium.tables import make_environment

    in_order(case.problem_name, case.agent_name)
    loaded = None if module is None else _load(module)
    options = given.assignments(case.problem_parameters or (), "-P")
    if case.problem_name.startswith("gym:"):
        read = {key: given.read(text, key, Any) for key, text in options.items()}
        found = make_environment(case.problem_name.removeprefix("gym:"), read)
    elif loaded is None:
        raise InvalidInput(
            f"{case.problem_name!r} is not something to play: name a Gymnasium environment as "
            "gym:ID, or give --module FILE.py and a name in that file; problems with known tables "
            "are for tacit run"
        )
    elif options:
        raise InvalidInput("-P is for gym:ID; what a file makes is made there")
    else:
        found = _named(loaded, case.problem_name)
    if bins is None:
        return found
    from tacit.problems.discretized import Discretized

    try:
        cuts = json.loads(bins)
    except ValueError:
        raise InvalidInput(
            f"--bins {bins!r}, but it must look like [1, 1, [-0.1, 0, 0.1], 10]: for every "
            "coordinate a number of cells or the edges between them"
        ) from None
    return Discretized(found, cuts)


def _load(path: Path) -> Any:
    """A Python file as a module; what goes wrong in it is one sentence."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidInput(f"--module {path}, but it must be a Python file that is there")
    loaded = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:
        raise InvalidInput(f"{path} could not be read: {type(error).__name__}: {error}") from error
    return loaded


def _named(module: Any, name: str) -> Any:
    """A name in a file; a function without arguments, or a class, makes the thing."""
    if not hasattr(module, name):
        from tacit.errors import suggestion

        names = [known for known in vars(module) if not known.startswith("_")]
        raise InvalidInput(f"{module.__file__} has no {name!r}{suggestion(name, names)}")
    found = getattr(module, name)
    try:
        makes = callable(found) and not inspect.signature(found).parameters
        return found() if makes else found
    except Exception as error:
        raise InvalidInput(
            f"{name} of {module.__file__} could not be made: {type(error).__name__}: {error}"
        ) from error


def _range(text: str, option: str, what: str) -> tuple[float, float]:
    low, comma, high = text.partition(",")
    try:
        return given.real(low), given.real(high)
    except given.Unreadable:
        raise InvalidInput(
            f"{option} {text!r}, but it must be the least and the largest {what}, for example 0,1"
        ) from None
