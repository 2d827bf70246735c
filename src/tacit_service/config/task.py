"""The task that the sections of a deployment file declare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.errors import InvalidInput
from tacit.policies.parametric import scoring, scoring_of
from tacit.task.pairs import allowed_flags, start_law, terminals
from tacit.task.participation import Participation
from tacit.task.task import Task
from tacit_service.config.sections import SearchSection, Settings, TaskSection


def labels_of(named: TaskSection) -> dict[str, list[str] | None]:
    """Names of the states and of the actions, None where they have none."""
    labels = {"states": named.states, "actions": named.actions}
    return {kind: None if isinstance(x, int) else list(x) for kind, x in labels.items()}


def _count(labels: tuple[str, ...] | int) -> int:
    return labels if isinstance(labels, int) else len(labels)


def rule_of(settings: Settings) -> Participation:
    """How often one person may take part, and what that teaches, as far as the file says it."""
    population = settings.population
    rule = Participation(
        population.participations,
        population.teaches,
        population.apart,
        population.renews,
        population.attendance,
    )
    if population.tokens == "shared" and rule != Participation():
        raise InvalidInput(
            "with one shared token nobody counts how often a person takes part, so the unit is "
            "one participation: leave participations, teaches, apart and renews out, or choose "
            'tokens = "per-device"'
        )
    if rule.attendance == "private":
        raise InvalidInput(
            'attendance in [population] = "private", but a service cannot hide who stays away: its '
            'batches close by counts of reports, which are published; leave it at "public"'
        )
    if rule.teaches == "every" and rule.period:
        raise InvalidInput(
            "renews in [population] goes with teaches first or lifetime: where every participation "
            "is counted in full, all of them are paid for once, as a group"
        )
    return rule


def read_task(settings: Settings, folder: Path) -> Task:
    """The task that the file describes; how often people take part is said by the rule."""
    named, population = settings.task, settings.population
    if settings.search is not None:
        return _search(settings, settings.search, folder)
    task = Task(
        family="tabular",
        horizon=named.horizon,
        sizes={"states": _count(named.states), "actions": _count(named.actions)},
        homogeneous=named.homogeneous,
        users=population.users,
        known={**_facts(named, folder), **_declared(named)},
        duration=named.duration,
        labels={kind: tuple(names) for kind, names in labels_of(named).items() if names},
    )
    if named.absorbing_state >= task.sizes["states"]:
        raise InvalidInput(
            f"absorbing_state = {named.absorbing_state} in [task], but states are numbered from 0 "
            f"to {task.sizes['states'] - 1}"
        )
    return task


def _search(settings: Settings, search: SearchSection, folder: Path) -> Task:
    """An episodic task: nothing is said about states but how their numbers are scored."""
    named, population = settings.task, settings.population
    if isinstance(named.states, tuple):
        raise InvalidInput(
            "states in [task] are the numbers of an observation where there is [search]: say how "
            "many there are"
        )
    if not named.duration:
        raise InvalidInput(
            "a search needs duration in [task], the time that an episode takes: reports are held "
            "so long, because the length of an episode often is its return"
        )
    box = np.array([search.least, search.most]) if search.least else None
    head = search.head or ("argmax" if box is None else "tanh")
    if len(search.least) != len(search.most):
        raise InvalidInput("least and most in [search] go together: give both or neither")
    form = scoring_of(
        search.scale,
        shift=search.shift,
        features=search.features,
        order=search.order,
        table=None if search.table is None else _array(folder / search.table, "table"),
        width=search.width,
        head=head,
        hidden=search.hidden,
        box=box,
    )
    sizes = {"states": named.states, "actions" if box is None else "inputs": _count(named.actions)}
    scoring(sizes, form)
    labels = labels_of(named)["actions"]
    return Task(
        family="episodic",
        horizon=named.horizon,
        sizes=sizes,
        homogeneous=False,
        users=population.users,
        known={**form, "returns": np.array(search.returns)},
        duration=named.duration,
        labels={"actions": tuple(labels)} if labels and box is None else {},
    )


def _declared(named: TaskSection) -> dict[str, npt.NDArray[Any]]:
    """Terminal states, allowed actions and the start law, as ``TabularMDP`` declares them."""
    S, A, names = _count(named.states), _count(named.actions), labels_of(named)
    ends = terminals(named.terminal or (), S, names["states"])
    may = allowed_flags(named.allowed, ends, (S, A), names["actions"])
    facts: dict[str, npt.NDArray[Any]] = {}
    if ends.any():
        low, high = named.reward_range
        if not low <= 0.0 <= high:
            raise InvalidInput(
                f"reward_range = [{low:g}, {high:g}] in [task], but it must hold 0 where there are "
                "terminal states: that is what they pay"
            )
        facts["terminal"], facts["end_reward"] = ends, np.asarray(-low / (high - low))
    if not may[~ends].all():
        facts["allowed"] = may
    if named.returns is not None:
        low, high = named.reward_range
        ends_of = np.array(named.returns) - named.horizon * low
        facts["returns"] = np.maximum(ends_of / (high - low), 0.0)
    if named.start is not None:
        facts["initial"] = start_law(named.start, ends, names["states"])
    return facts


def _facts(named: TaskSection, folder: Path) -> dict[str, npt.NDArray[Any]]:
    """Declared transition features phi [S, A, S, d], and the bound on their parameter."""
    if named.features is None:
        if named.theta_norm is not None:
            raise InvalidInput("theta_norm in [task] goes with features; give both or neither")
        return {}
    if named.theta_norm is None:
        raise InvalidInput("features in [task] need theta_norm, the bound on their parameter")
    path = folder / named.features
    phi = _array(path, "features")
    S, A = _count(named.states), _count(named.actions)
    fits = isinstance(phi, np.ndarray) and phi.ndim == 4 and phi.shape[:3] == (S, A, S)
    if not fits or phi.dtype.kind != "f" or not np.isfinite(phi).all():
        raise InvalidInput(
            f"features: {path.name} must hold finite numbers phi(s'|s,a) of shape [states, "
            f"actions, states, d] = [{S}, {A}, {S}, d]"
        )
    return {"features": phi.astype(np.float64), "theta_norm": np.array(named.theta_norm)}


def _array(path: Path, name: str) -> npt.NDArray[Any]:
    """A plain array from a file, never a pickle."""
    try:
        array: npt.NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidInput(f"{name}: {path} cannot be read as a .npy file ({error})") from None
    return array
