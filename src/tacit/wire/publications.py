"""A publication in JSON: policy, and the public numbers that go with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.errors import InvalidInput
from tacit.policy import Policy, StochasticPolicy, TabularPolicy
from tacit.publication import Publication
from tacit.task import Task
from tacit.wire.arrays import array_from_json, array_to_json
from tacit.wire.fields import fields, text, whole
from tacit.wire.tasks import named


def publication_to_json(publication: Publication, task_id: str) -> dict[str, Any]:
    """The body of a policy request."""
    return {
        "task_id": task_id,
        "version": publication.version,
        "policy": _policy_to_json(publication.policy),
        "context": {
            name: array_to_json(array) for name, array in sorted(publication.context.items())
        },
    }


def publication_from_json(value: object, task: Task, task_id: str) -> Publication:
    """The publication again, refused if it is of another task or does not fit this one."""
    given = fields(value, "policy answer", ("task_id", "version", "policy", "context"))
    if text(given["task_id"], "task_id") != task_id:
        raise InvalidInput(
            f"this is a policy of task {given['task_id'][:12]}..., not of {task_id[:12]}..."
        )
    context = {
        name: array_from_json(array, name)
        for name, array in named(given["context"], "context").items()
    }
    version = whole(given["version"], "version", 0)
    return Publication(version, _policy_from_json(given["policy"], task), context)


def _policy_to_json(policy: Policy) -> dict[str, Any]:
    if isinstance(policy, TabularPolicy):
        return {"kind": "table", "actions": policy.actions.tolist()}
    if isinstance(policy, StochasticPolicy):
        return {"kind": "stochastic", "probabilities": array_to_json(policy.probabilities)}
    raise InvalidInput(f"a {type(policy).__name__} is not served to devices")


def _policy_from_json(value: object, task: Task) -> Policy:
    H, S, A = task.horizon, task.sizes["states"], task.sizes["actions"]
    if isinstance(value, dict) and value.get("kind") == "table":
        table = fields(value, "policy", ("kind", "actions"))["actions"]
        if not isinstance(table, list) or len(table) != H:
            raise InvalidInput(f"the policy must have {H} rows, one for each step")
        for row in table:
            if not isinstance(row, list) or len(row) != S:
                raise InvalidInput(f"every row of the policy must have {S} actions")
        actions = [[whole(action, "an action", 0, A - 1) for action in row] for row in table]
        return TabularPolicy(np.array(actions, dtype=np.int64))
    if isinstance(value, dict) and value.get("kind") == "stochastic":
        table = fields(value, "policy", ("kind", "probabilities"))["probabilities"]
        return StochasticPolicy(array_from_json(table, "probabilities", (H, S, A)))
    raise InvalidInput("the kind of the policy must be table or stochastic")
