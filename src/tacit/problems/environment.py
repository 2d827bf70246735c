"""What can be played and not read, as an object: ``tacit.environment``.

Which problem it becomes is up to the agent: a table of states and actions for agents for tables,
and episodes of which the return alone is read for a search. Either way nobody knows an optimum.
"""

from __future__ import annotations

import copy
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidInput, suggestion
from tacit.policies.parametric import scoring_of
from tacit.problems.played import Playable, Played
from tacit.validate import integer

if TYPE_CHECKING:
    from tacit.problems.discretized import Cut
    from tacit.problems.episodic import Episodes

SIZES = ("states", "actions")

FILE = ".py:"
"""Between the name of a file and a name in it."""


@dataclass(frozen=True, eq=False)
class Environment:
    """Something that can be played, for an agent to learn although nobody knows its truth.

    There is no optimum to compare with, so results are of returns instead of regret. They are
    outcomes of a simulation, which no agent sees and no guarantee covers; of real people they would
    be private.

    >>> from tacit import simulate
    >>> lake = environment("FrozenLake-v1", rewards=(0, 1), horizon=30)
    >>> simulate(lake, "psrl", 20).played
    True

    Attributes:
        source: a Gymnasium environment or its id, with discrete observations and actions for agents
            for tables; a function ``play(policy, rng)`` that plays one episode and returns its
            steps, a list of (state, action, reward, next state), None as the last next state if the
            episode ended there (for tacit-search: that returns what the episode returned); or
            "FILE.py:NAME", where one of them stands in a file. A function asks
            ``policy.act(state, step, rng)`` and takes all its chance from ``rng``.
        rewards: least and largest reward of one step, public, for agents for tables; what lies
            outside is clipped before the agent learns from it.
        returns: least and largest return of an episode, public, for tacit-search; likewise clipped.
            Gymnasium's classic control problems declare their own.
        horizon: steps after which an episode is cut; by default the environment's time limit.
        sizes: {"states": ..., "actions": ...} of a function that plays.
        scoring: how tacit-search scores observations (``tacit.policies.parametric.scoring_of``),
            public; by default the numbers of an observation and 1, scaled by the bounds of their
            space, or not at all for a function that plays.
        homogeneous: False if the law of a step may depend on its number.
        bins: cuts of continuous observations into cells, one for every coordinate or one for all: a
            number of equal cells, or the edges between them
            (:class:`tacit.problems.discretized.Discretized`).
    """

    source: Any
    _: KW_ONLY
    rewards: tuple[float, float] | None = None
    returns: tuple[float, float] | None = None
    horizon: int | None = None
    sizes: Mapping[str, int] | None = None
    scoring: Mapping[str, npt.NDArray[Any]] | None = None
    homogeneous: bool = True
    bins: Cut | Sequence[Cut] | None = None

    def __post_init__(self) -> None:
        for name in self.sizes or ():
            if name not in SIZES:
                raise InvalidInput(f"sizes has no {name!r}{suggestion(name, SIZES)}")
        if self.scoring is not None and not isinstance(self.scoring, Mapping):
            raise InvalidInput(
                f"scoring is {self.scoring!r}, but it must be what "
                "tacit.policies.parametric.scoring_of(...) makes"
            )

    def problem(self, agent: object) -> Playable:
        """As a problem that this agent can learn."""
        if "episodic" in getattr(agent, "families", ()):
            return self._episodes()
        if self.rewards is None:
            raise InvalidInput("say the least and the largest reward of one step: rewards=(0, 1)")
        return self._table(self.rewards)

    def _table(self, rewards: tuple[float, float]) -> Played:
        """States, actions and rewards of every step."""
        import gymnasium

        source = self._made()
        if isinstance(source, gymnasium.Env):
            from tacit.problems.gymnasium.environments import played_environment

            if self.sizes:
                raise InvalidInput(
                    "an environment says itself how many states and actions it has: leave states "
                    "and actions out"
                )
            return played_environment(
                source, rewards=rewards, horizon=self.horizon, homogeneous=self.homogeneous
            )
        sizes = self._all_sizes(source)
        return Played(
            source, name=_name(source), rewards=rewards, homogeneous=self.homogeneous, **sizes
        )

    def _episodes(self) -> Episodes:
        """Episodes of which a search reads the return."""
        import gymnasium

        from tacit.problems.classic_control import CLASSIC
        from tacit.problems.episodic import Episodes, PlayedEpisodes

        id = _id(self.source)
        plain = self.scoring is None and self.bins is None
        known = copy.copy(self.source) if isinstance(self.source, Episodes) else None
        if id in CLASSIC and plain and (self.horizon is None or self.returns is not None):
            known = CLASSIC[id]()
            if self.returns is not None:
                known = known.narrowed(self.returns, self.horizon)
        if known is not None:
            known.played = True
            return known
        source = self._made()
        if self.returns is None:
            raise InvalidInput(
                "say the least and the largest return of an episode: returns=(0, 500); what lies "
                "outside is clipped"
            )
        if isinstance(source, gymnasium.Env):
            from tacit.problems.gymnasium.environments import searched_environment

            return searched_environment(
                source, returns=self.returns, form=self.scoring, horizon=self.horizon
            )
        sizes = self._all_sizes(source)
        steps, form = sizes.pop("horizon"), self.scoring
        if form is None:
            states = integer(sizes["states"], "states", low=1)
            form = scoring_of(np.ones(states), features="affine")
        if form["box"].size:
            sizes["inputs"] = sizes.pop("actions")
        return PlayedEpisodes(
            source, sizes, horizon=steps, returns=self.returns, form=form, name=_name(source)
        )

    def _made(self) -> Any:
        """What is played: an environment, or a function that plays."""
        source = self.source
        if isinstance(source, str):
            from tacit.problems.gymnasium.tables import make_environment

            source = _in_file(source) if FILE in source else make_environment(_id(source), {})
        if self.bins is None:
            return source
        from tacit.problems.discretized import Discretized

        return Discretized(source, self.bins)

    def _all_sizes(self, source: object) -> dict[str, Any]:
        """States, actions and horizon of a function that plays, all of which were given."""
        if not callable(source):
            raise InvalidInput(
                "the environment must be a Gymnasium environment, the id of one (FrozenLake-v1) or "
                f"a function that plays one episode, got {type(source).__name__}; a problem with "
                "known tables is one already"
            )
        known = {**dict.fromkeys(SIZES), **(self.sizes or {}), "horizon": self.horizon}
        missing = [name for name, size in known.items() if size is None]
        if missing:
            raise InvalidInput(
                f"a function that plays does not say its sizes: give {', '.join(missing)}"
            )
        return known


environment = Environment
"""As programs call it: ``tacit.environment(...)``."""


def can_only_be_played(name: str) -> bool:
    """Whether a name is that of something without known tables: ``play:ID``, ``FILE.py:NAME``.

    ``gym:ID`` is read where the environment tells its table, and played where it tells none.
    """
    if name.startswith("play:") or FILE in name:
        return True
    if not name.startswith("gym:"):
        return False
    from tacit.problems.gymnasium.tables import has_table

    return not has_table(_id(name))


def _id(source: object) -> str:
    """Gymnasium's id in the name of an environment; empty for what is no name."""
    if not isinstance(source, str):
        return ""
    return source.removeprefix("gym:").removeprefix("play:")


def _name(play: object) -> str:
    """What a function that plays is called."""
    return str(getattr(play, "__name__", type(play).__name__))


def _in_file(name: str) -> Any:
    """A name in a file; a function without arguments, a class or an id makes the thing."""
    import gymnasium

    path, _, wanted = name.rpartition(":")
    module = _load(Path(path))
    if wanted in gymnasium.registry:  # an id that the file registers
        return gymnasium.make(wanted)
    if not hasattr(module, wanted):
        names = [known for known in vars(module) if not known.startswith("_")]
        raise InvalidInput(f"{module.__file__} has no {wanted!r}{suggestion(wanted, names)}")
    item: Callable[..., Any] = getattr(module, wanted)
    try:
        makes = callable(item) and not inspect.signature(item).parameters
        return item() if makes else item
    except Exception as error:
        raise InvalidInput(
            f"{wanted} of {module.__file__} could not be made: {type(error).__name__}: {error}"
        ) from error


def _load(path: Path) -> Any:
    """A Python file as a module; what goes wrong in it is one sentence."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidInput(f"{path}, but it must be a Python file that is there")
    loaded = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:
        raise InvalidInput(f"{path} could not be read: {type(error).__name__}: {error}") from error
    return loaded
