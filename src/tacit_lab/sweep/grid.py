"""From a spec to configurations: cross the axes, type the numbers, refuse what cannot run.

Agents that are not private take no epsilon, delta or calibration: they appear once, not once per
value. A purely epsilon-private agent that refuses a delta appears without one. Where people take
part once, nothing else about how they come back makes a difference: that appears once as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args

from tacit.agents.catalogue import PRIVACY_PARAMETERS, agents, make_agent
from tacit.errors import InvalidInput
from tacit.problems.catalogue import make_problem, problem_entry
from tacit.util.registry import Registered
from tacit_lab.sweep.spec import Spec, SweepCase, axis
from tacit_lab.sweep.task import Coming, Configuration, Modules, Named


@dataclass(frozen=True)
class Planned:
    """A configuration and the seeds it is reported on.

    Attributes:
        configuration: without the parameter that is still to be chosen, if there is one.
        seeds: root seeds, whether finished or not.
        candidates: the configuration with each candidate of that parameter.
        chosen: how the parameter was chosen, for the manifest.
    """

    configuration: Configuration
    seeds: tuple[int, ...]
    candidates: tuple[Configuration, ...] = ()
    chosen: Mapping[str, Any] | None = None


def plan(spec: Spec) -> list[Planned]:
    """All configurations of a sweep in the order of its file, each of them once."""
    modules = Modules.find(spec.folder, spec.modules)
    found: dict[str, Planned] = {}
    for case in spec.cases:
        for configuration in _cross(case):
            full = replace(configuration, checkpoints=spec.checkpoints, modules=modules)
            planned = _planned(full, case.seeds, spec)
            before = found.get(full.key)
            if before is not None:
                seeds = tuple(dict.fromkeys((*before.seeds, *case.seeds)))
                planned = replace(before, seeds=seeds)
            found[full.key] = planned
    _check_choice(spec, list(found.values()))
    return list(found.values())


def _cross(case: SweepCase) -> Iterator[Configuration]:
    problems = [problem for entry in case.problems for problem in _problems(entry)]
    learners = [agent for entry in case.agents for agent in _agents(entry, case.privacy)]
    ways = [Coming.of(values) for values in _product({k: [*v] for k, v in case.coming.items()})]
    crossed = itertools.product(problems, case.episodes, ways, learners)
    for problem, episodes, coming, agent in crossed:
        yield Configuration(problem, agent, episodes, reveal=case.reveal, coming=coming)


def _problems(given: Named) -> Iterator[Named]:
    entry = problem_entry(given.name)
    for parameters in _product(given.parameters):
        typed = _typed(entry, parameters)
        make_problem(given.name, **typed)
        yield Named(given.name, typed)


def _agents(given: Named, privacy: Mapping[str, tuple[Any, ...]]) -> Iterator[Named]:
    entry = agents.entry(given.name)
    missing = {
        key: list(values)
        for key, values in privacy.items()
        if key in entry.parameters and key not in given.parameters
    }
    seen = []
    for parameters in _product({**missing, **given.parameters}):
        typed = _without_useless_delta(given.name, _typed(entry, parameters), "delta" in missing)
        if typed not in seen:
            seen.append(typed)
            yield Named(given.name, typed)


def _without_useless_delta(name: str, parameters: dict[str, Any], shared: bool) -> dict[str, Any]:
    """Parameters with which the agent can be made; a shared delta is left out if it refuses one."""
    try:
        make_agent(name, **parameters)
    except InvalidInput as error:
        less = {key: value for key, value in parameters.items() if key != "delta"}
        if not shared or less == parameters:
            raise
        try:
            make_agent(name, **less)
        except InvalidInput:
            raise error from None
        return less
    return parameters


def _product(parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    axes = [axis(value, name) for name, value in parameters.items()]
    for values in itertools.product(*axes):
        yield dict(zip(parameters, values, strict=True))


def _typed(entry: Registered[Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """``1`` where a number is declared means 1.0, and 1e3 where a whole one is means 1000."""
    takes = entry.parameters
    return {
        name: _number(value, takes[name].annotation if name in takes else None)
        for name, value in parameters.items()
    }


def _number(value: Any, annotation: Any) -> Any:
    kinds = (annotation, *get_args(annotation))
    if float in kinds and type(value) is int:
        return float(value)
    if int in kinds and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _planned(configuration: Configuration, seeds: tuple[int, ...], spec: Spec) -> Planned:
    choose, agent = spec.choose, configuration.agent
    if choose is None or (choose.agents is not None and agent.name not in choose.agents):
        return Planned(configuration, seeds)
    entry = agents.entry(agent.name)
    if choose.parameter not in entry.parameters or choose.parameter in agent.parameters:
        return Planned(configuration, seeds)
    candidates = []
    for value in choose.candidates:
        typed = _typed(entry, {**agent.parameters, choose.parameter: value})
        make_agent(agent.name, **typed)
        candidates.append(replace(configuration, agent=Named(agent.name, typed)))
    return Planned(configuration, seeds, tuple(candidates))


def _check_choice(spec: Spec, planned: list[Planned]) -> None:
    choose = spec.choose
    if choose is None:
        return
    if choose.parameter in PRIVACY_PARAMETERS:
        raise InvalidInput(
            f"choose.parameter = {choose.parameter!r}, but privacy is asked for, not chosen by "
            "regret; list its values as an axis instead"
        )
    chosen = {item.configuration.agent.name for item in planned if item.candidates}
    lacking = sorted(set(choose.agents or ()) - chosen)
    if lacking or not chosen:
        who = ", ".join(lacking) or "any agent of the sweep"
        raise InvalidInput(
            f"[choose] finds nothing to choose for {who}: it has no parameter "
            f"{choose.parameter!r}, or the file already sets it, or it is not in the sweep"
        )
