"""What policies are worth by one release about a log, in the log's own rewards."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.learned_policy import LearnedPolicy
from tacit.logs.mapping import LogMapping
from tacit.planners.evaluation.by_log import Models, ValueEstimate, begun, recorded_value
from tacit.planners.evaluation.draws import action_chances
from tacit.policies.base import Policy
from tacit.policies.tabular import TabularPolicy, check_allowed
from tacit.release import Release
from tacit.task.task import Task
from tacit.util.intervals import Interval


def values_of(mapped: LogMapping, release: Release, policy: Policy) -> dict[str, Interval | None]:
    """What a policy is worth, what was done before, and the difference, by one release.

    Both are valued in the same models, so that what is wrong with the models is wrong with both.
    What people earned themselves is read off their returns where these were recorded whole.
    """
    recorded = recorded_value(release, mapped.max_return)
    behaviour = None if recorded is None else in_log_units(mapped, recorded)
    fitting = _models(mapped, release)
    if fitting is None:
        return {"policy": None, "behaviour": behaviour, "difference": None}
    models, before = fitting
    learned = models.values(table_of(policy, mapped.task))
    top, (low, high) = mapped.max_return, mapped.reward_range
    by_models, difference = before.interval(0.0, top), (learned - before).interval(-top, top)
    # By the models people chose actions by the declared state alone. Where they did not, what was
    # done before is worth something else than that, and the returns show how much.
    shift = 0.0 if recorded is None else by_models.value - recorded.value
    ends = difference.low + min(shift, 0.0), difference.high + max(shift, 0.0)
    return {
        "policy": in_log_units(mapped, learned.interval(0.0, top)),
        "behaviour": behaviour or in_log_units(mapped, by_models),
        "difference": Interval(*((high - low) * x for x in (difference.value, *ends))),
    }


def value_by_release(
    mapped: LogMapping, release: Release, policy: Policy | LearnedPolicy, beta: float
) -> Interval | None:
    """What a policy is worth by released transitions, in the log's rewards.

    None without them, and where they do not give what people earned.
    """
    table, fitting = table_of(policy, mapped.task), _models(mapped, release)
    if fitting is None:
        return None
    return in_log_units(mapped, fitting[0].values(table).interval(0.0, mapped.max_return, beta))


def _models(mapped: LogMapping, release: Release) -> tuple[Models, ValueEstimate] | None:
    """Models by released transitions that are alike in all stages, and what was done before.

    None where no value follows, or where the models do not give what people earned, as far as that
    was recorded. They do not know of a declared most: where it is too low, they are far above it.
    """
    if release.blocks.get("transitions", np.zeros(0)).ndim != 2 or not begun(release):
        return None
    models = Models(mapped.task, release, mapped.ended, np.random.default_rng(0))
    recorded, before = recorded_value(release, mapped.max_return), models.values(None)
    ends = before.interval(0.0, mapped.task.horizon)
    apart = recorded is not None and (recorded.low > ends.high or ends.low > recorded.high)
    return None if apart else (models, before)


def table_of(policy: Policy | LearnedPolicy, task: Task) -> Array:
    """Action probabilities [H, S, A] of a policy that fits the task."""
    shape = (task.horizon, task.sizes["states"], task.sizes["actions"])
    bare = policy.policy if isinstance(policy, LearnedPolicy) else policy
    known = bare
    if isinstance(bare, TabularPolicy):
        known = TabularPolicy(np.clip(bare.actions, 0, shape[2] - 1))
    table = action_chances(known, shape[2])
    if table is None or table.shape != shape:
        raise InvalidInput(
            "the policy does not fit the mapping, which has [horizon, states, actions] = "
            f"{list(shape)}"
        )
    check_allowed(bare, task.pairs)
    return table


def in_log_units(mapped: LogMapping, interval: Interval) -> Interval:
    """An interval in rewards of [0, 1] per step, in the log's own rewards."""
    return Interval(*map(mapped.to_log_units, (interval.value, interval.low, interval.high)))


def values_json(values: Mapping[str, Interval | None]) -> dict[str, Any]:
    """Intervals as plain values."""
    return {
        name: None if x is None else {"value": x.value, "ci95": [x.low, x.high]}
        for name, x in values.items()
        if x is None or math.isfinite(x.value)
    }
