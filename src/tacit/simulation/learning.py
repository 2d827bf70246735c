"""``tacit.learn``: an agent learns what can be played, without anybody knowing the truth."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.agents.base import Agent
from tacit.agents.catalogue import make_agent
from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.forecast import bind, in_order, pair
from tacit.kernels.compiler import working_time
from tacit.learned_policy import LearnedPolicy
from tacit.policies.base import Policy
from tacit.policies.parametric import declared
from tacit.privacy.noise import SecureNoise
from tacit.problems.classic_control import CLASSIC
from tacit.problems.episodic import CompiledEpisodes, Episodes, PlayedEpisodes
from tacit.problems.gymnasium.tables import make_environment
from tacit.problems.played import Play, Played
from tacit.simulation.api import (
    MOST_EPISODES,
    MOST_SEEDS,
    begin_with,
    keeper,
    outcome,
    what_runs,
)
from tacit.simulation.checkpoints import checkpoints as checkpoint_grid
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.learn_result import LearnResult, compared
from tacit.simulation.runs.base import Run
from tacit.simulation.runs.stepwise import StepwiseRun
from tacit.simulation.scheduler import Progress, advance_all
from tacit.streams import stream
from tacit.task.participation import Participation
from tacit.validate import choice, integer

if TYPE_CHECKING:
    from tacit.logs.offline import OfflineResult

TESTS = 200
"""Episodes that each learned policy is tried on afterwards, and what does not learn beside it.

As many again, shared by all actions, choose the best constant one.
"""


def learn(
    environment: str | Play | Any,
    agent: Agent | str,
    users: int,
    seeds: int = 1,
    *,
    rewards: tuple[float, float] | None = None,
    returns: tuple[float, float] | None = None,
    form: Mapping[str, npt.NDArray[Any]] | None = None,
    horizon: int | None = None,
    states: int | None = None,
    actions: int | None = None,
    homogeneous: bool = True,
    participations: int | Participation = 1,
    noise: str = "simulated",
    seed: int = 0,
    checkpoints: int | str = "log",
    progress: Progress | None = None,
    stop: threading.Event | None = None,
    resume: str | Path | None = None,
    prior: OfflineResult | str | Path | None = None,
) -> LearnResult:
    """Let ``agent`` learn from users who live in ``environment``, whose truth nobody knows.

    There is no optimum to compare with, so the result has returns instead of regret. They are
    outcomes of a simulation, which no agent sees and no guarantee covers; of real people they
    would be private. Ctrl-C ends the runs early and returns what was done.

    Args:
        environment: a Gymnasium environment or its id ("gym:FrozenLake-v1"), with discrete
            observations and actions (:class:`tacit.Discretized` makes them so); or a function
            ``play(policy, rng)`` that plays one episode and returns its steps, a list of (state,
            action, reward, next state), None as the last next state if the episode ended there. It
            asks ``policy.act(state, step, rng)`` and takes all its chance from ``rng``.
        agent: who learns, or its name: any agent for tables, or tacit-search, which takes
            environments with any observations and actions, and functions ``play(policy, rng)``
            that return what one episode returned.
        users: number of users, one episode each.
        seeds: number of independent runs.
        rewards: least and largest reward of one step, public, for agents for tables; what lies
            outside is clipped before the agent learns from it.
        returns: least and largest return of an episode, public, for tacit-search; likewise clipped.
            Gymnasium's classic control problems declare their own.
        form: how tacit-search scores observations (``tacit.policies.parametric.declared``), public;
            by default the numbers of an observation and 1, scaled by the bounds of their space, or
            not at all for a function that plays.
        horizon: steps after which an episode is cut; by default the environment's time limit.
        states: how many there are, for a function that plays.
        actions: likewise.
        homogeneous: False if the law of a step may depend on its number.
        participations: how often one person may take part, or the whole rule
            (``tacit.Participation``); the guarantee covers all that one person does. Everybody who
            is simulated takes part once all the same.
        noise: "simulated" (seeded, fast), or "secure" (as for real people; takes no seed).
        seed: root of all random streams.
        checkpoints: "log", or a number n to record every n-th user.
        progress: called now and then with (users done, mean return so far), means over runs.
        stop: set it from another thread to end the runs early.
        resume: a folder in which the runs keep where they stand, as in :func:`tacit.simulate`; what
            it holds already is not done again.
        prior: a result of :func:`tacit.offline` to begin with, as in :func:`tacit.simulate`.

    Returns:
        Returns with bands, the guarantee and the policies.
    """
    in_order(environment, agent)
    K = integer(users, "users", low=1, high=MOST_EPISODES)
    count = integer(seeds, "seeds", low=1, high=MOST_SEEDS)
    root = integer(seed, "seed", low=0)
    choice(noise, "noise", ("simulated", "secure"))
    if isinstance(agent, str):
        agent = make_agent(agent)
    sizes: dict[str, Any] = {"horizon": horizon, "states": states, "actions": actions}
    world: Played | Episodes
    if "episodic" in getattr(agent, "families", ()):
        world = searched(environment, returns=returns, form=form, **sizes)
    elif rewards is None:
        raise InvalidInput("say the least and the largest reward of one step: rewards=(0, 1)")
    else:
        world = played(environment, rewards=rewards, homogeneous=homogeneous, **sizes)
    _, learner = pair(world, agent)
    bound = bind(world, learner, K, participations=participations)
    start = None if prior is None else begin_with(prior)
    if start is not None:
        bound = start.begin(bound, learner.name)
    world.try_out(stream(root, 0, "trial"))
    grid = checkpoint_grid(K, checkpoints)
    stop = stop or threading.Event()
    source = SecureNoise() if noise == "secure" else None
    runs: list[Run] = [
        (compiled_run(world, bound, root, run, grid) if source is None else None)
        or StepwiseRun(world, bound, root, run, grid, stop, source)
        for run in range(count)
    ]

    def tell(done: int, _: float) -> None:
        if progress is not None and done:
            earned = [run.score.now[2] for run in runs]
            progress(done, float(world.total(np.mean(earned), done)) / done)

    keep = None
    if resume is not None:
        how = {"seeds": count, "seed": root, "checkpoints": grid.tolist(), "noise": noise}
        how |= {} if start is None else {"prior": start.digest()}
        keep = keeper(Path(resume), runs, {**what_runs(world, learner, bound), **how})
    before = sum(int(run.score.at[0]) for run in runs)
    began = working_time()
    # One thread: whoever plays keeps the interpreter busy, and one environment serves all runs.
    finished = advance_all(runs, K, 1, stop, tell, keep)
    seconds = working_time() - began
    done = sum(int(run.score.at[0]) for run in runs) - before
    guarantee = bound.guarantee.as_simulated() if source is None else bound.guarantee
    if start is not None:
        guarantee = start.stated(guarantee)
    found = outcome(world, learner, bound, guarantee, root, runs, grid, seconds, done, finished)
    found["reward"] = world.total(found["reward"], found["episodes"])
    found["prior"] = None if start is None else start.to_json()
    return LearnResult(**found, tests=_tests(world, found["policies"], root))


def played(
    environment: Any,
    *,
    states: int | None = None,
    actions: int | None = None,
    horizon: int | None = None,
    **declared: Any,
) -> Played:
    """What a person calls an environment, as a problem."""
    if isinstance(environment, str):
        environment = make_environment(environment.removeprefix("gym:"), {})
    import gymnasium

    if isinstance(environment, gymnasium.Env):
        from tacit.problems.gymnasium.environments import played_environment

        if (states, actions) != (None, None):
            raise InvalidInput(
                "an environment says itself how many states and actions it has: leave states and "
                "actions out"
            )
        return played_environment(environment, horizon=horizon, **declared)
    sizes: dict[str, Any] = {"states": states, "actions": actions, "horizon": horizon}
    name = _function(environment, sizes)
    return Played(environment, name=name, **sizes, **declared)


def _function(environment: Any, sizes: Mapping[str, Any]) -> str:
    """The name of a function that plays, if it is one and all its sizes were given."""
    if not callable(environment):
        raise InvalidInput(
            "the environment must be a Gymnasium environment, the id of one (gym:FrozenLake-v1) or "
            f"a function that plays one episode, got {type(environment).__name__}; a problem with "
            "known tables is for tacit.simulate"
        )
    missing = [name for name, size in sizes.items() if size is None]
    if missing:
        raise InvalidInput(
            f"a function that plays does not say its sizes: give {', '.join(missing)}"
        )
    return str(getattr(environment, "__name__", type(environment).__name__))


def searched(
    environment: Any,
    *,
    returns: tuple[float, float] | None = None,
    form: Mapping[str, npt.NDArray[Any]] | None = None,
    horizon: int | None = None,
    states: int | None = None,
    actions: int | None = None,
) -> Episodes:
    """What a person calls an environment, as an episodic problem."""
    if form is not None and not isinstance(form, Mapping):
        raise InvalidInput(
            f"form is {form!r}, but it must be what tacit.policies.parametric.declared(...) makes"
        )
    if isinstance(environment, str):
        id = environment.removeprefix("gym:")
        if id in CLASSIC and form is None and (horizon is None or returns is not None):
            return _narrowed(CLASSIC[id](), returns, horizon)
        environment = make_environment(id, {})
    if isinstance(environment, Episodes):
        return environment
    if returns is None:
        raise InvalidInput(
            "say the least and the largest return of an episode: returns=(0, 500); what lies "
            "outside is clipped"
        )
    import gymnasium

    if isinstance(environment, gymnasium.Env):
        from tacit.problems.gymnasium.environments import searched_environment

        return searched_environment(environment, returns=returns, form=form, horizon=horizon)
    given: Any = {"states": states, "actions": actions, "horizon": horizon}
    name, steps = _function(environment, given), given.pop("horizon")
    if form is None:
        form = declared(np.ones(integer(states, "states", low=1)), features="affine")
    if form["box"].size:
        given["inputs"] = given.pop("actions")
    return PlayedEpisodes(environment, given, horizon=steps, returns=returns, form=form, name=name)


def _narrowed(
    known: CompiledEpisodes, returns: tuple[float, float] | None, horizon: int | None
) -> CompiledEpisodes:
    """A compiled problem with another range or fewer steps: how it is scored stays the same."""
    if returns is None:
        return known
    steps = known.horizon if horizon is None else horizon
    steps = integer(steps, "horizon", low=1, high=known.horizon)
    world = known.world._replace(horizon=steps)
    return CompiledEpisodes(world, returns=returns, form=known.arrays, name=known.name)


def _tests(
    world: Played | Episodes, policies: Sequence[LearnedPolicy], root: int
) -> dict[str, Any]:
    """How the learned policies do on fresh episodes, and what does not learn on the same."""

    def returns(policy: Policy, run: int, purpose: str = "test", episodes: int = TESTS) -> Array:
        rng = stream(root, run, purpose)
        totals = [world.rollout(policy, rng).rewards.sum() for _ in range(episodes)]
        return world.total(np.array(totals), 1)

    def fixed(policy: Policy) -> Array:
        return np.array([returns(policy, run) for run in range(max(1, len(policies)))])

    played, best = {"uniform": fixed(world.uniform())}, ""
    if policies:
        constants = world.constants()
        each = max(1, TESTS // len(constants))
        means = {a: returns(policy, 0, "constant", each).mean() for a, policy in constants.items()}
        best = max(means, key=lambda a: float(means[a]))
        played["constant"] = fixed(constants[best])
        learned = [returns(one.publication.policy, run) for run, one in enumerate(policies)]
        played["policy"] = np.array(learned)
    found = compared(played, best)
    if isinstance(world, Episodes):
        found["outside"] = {who: world.outside(totals) for who, totals in played.items()}
    return found
