"""A policy with its papers: what it was learned from, what is guaranteed, and its one file.

The file is what the service answers to a policy request and what devices read
(``wire/documents.py``): JSON that says the format and its version, the publication, the sizes of
the task, how many users are in it, the guarantee, and the SHA-256 of all of this. A policy is made
of releases alone, so it can be passed on freely: what was guaranteed to its users holds whatever is
done with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arrays import Array
from tacit.errors import InvalidInput
from tacit.policies.base import Policy
from tacit.policies.linear import LinearPolicy
from tacit.policies.parametric import ParametricPolicy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.privacy.guarantee import Guarantee
from tacit.publication import Publication
from tacit.task.task import Task
from tacit.wire import documents, strict_json

if TYPE_CHECKING:
    import pandas as pd

FORMAT, FORMAT_VERSION = "tacit-policy", 1

Names = Mapping[str, Sequence[str]]
"""What states and actions are called, by ``states`` and ``actions``; numbers where left out."""


@dataclass(frozen=True, eq=False)
class LearnedPolicy:
    """How to act, and everything that has to be known about it.

    Attributes:
        publication: the policy itself, its version, and the public numbers that go with it.
        task_id: of the task that it was learned for.
        family: of the task.
        sizes: of the task.
        users: how many users it was learned from.
        guarantee: what these users were guaranteed.
        names: what states and actions are called, where they are called something.
        about: where it comes from, in plain values such as the names of problem and agent.
        previous: hash of the publication before, where the service published it.
    """

    publication: Publication
    task_id: str
    family: str
    sizes: Mapping[str, int]
    users: int
    guarantee: Guarantee
    names: Names = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    previous: str | None = None

    @classmethod
    def of(
        cls,
        publication: Publication,
        task: Task,
        guarantee: Guarantee,
        users: int,
        *,
        task_id: str | None = None,
        names: Names | None = None,
        about: Mapping[str, Any] | None = None,
        previous: str | None = None,
    ) -> LearnedPolicy:
        """A publication of a task; without an id the digest of the task stands for it."""
        return cls(
            publication,
            task_id or task.digest(),
            task.family,
            dict(task.sizes),
            users,
            guarantee,
            names or {},
            about or {},
            previous,
        )

    @property
    def policy(self) -> Policy:
        """The bare policy, without its papers."""
        return self.publication.policy

    @property
    def horizon(self) -> int:
        """Number of steps the policy covers."""
        return self.policy.horizon

    def act(self, observation: Any, step: int, rng: np.random.Generator | None = None) -> Any:
        """What to do when this is observed at a step.

        Args:
            observation: number of the state, or its name where it has one; a vector for linear
                systems.
            step: of the episode, counted from 0.
            rng: what a policy that draws its actions draws them from.
        """
        if isinstance(observation, str):
            known = list(self.names.get("states", ()))
            if observation not in known:
                raise InvalidInput(f"this policy knows no state called {observation!r}")
            observation = known.index(observation)
        return self.policy.act(observation, step, rng)

    def to_frame(self) -> pd.DataFrame:
        """The whole policy as a table, states and actions by name where they have names."""
        actions = self.names.get("actions", self.names.get("inputs"))
        return self.policy.to_frame(self.names.get("states"), actions)

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        return documents.sealed(
            {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                **documents.publication_to_json(self.publication, self.task_id, self.previous),
                "family": self.family,
                "horizon": self.horizon,
                "sizes": dict(self.sizes),
                "users": self.users,
                "guarantee": self.guarantee.to_json(),
                "names": {kind: list(names) for kind, names in self.names.items()},
                "about": dict(self.about),
            }
        )

    @classmethod
    def from_json(cls, value: object) -> LearnedPolicy:
        """The inverse; what is foreign, newer, damaged or does not fit together is refused."""
        _require_format(value)
        document = strict_json.fields(
            value, "the policy", (*documents.PUBLISHED, *documents.BESIDES), ("previous",)
        )
        documents.check_seal(document)
        sizes = strict_json.sizes_from_json(document["sizes"])
        if "states" not in sizes:
            raise InvalidInput("the policy does not say how many states its task has")
        horizon = strict_json.whole(document["horizon"], "horizon", 1)
        return cls(
            documents.read_publication(document, horizon, sizes),
            strict_json.text(document["task_id"], "task_id"),
            strict_json.text(document["family"], "family"),
            sizes,
            strict_json.whole(document["users"], "users", 0),
            _guarantee(document["guarantee"]),
            _names(document["names"], sizes),
            strict_json.named(document["about"], "about"),
            document.get("previous"),
        )

    def save(self, path: str | Path) -> Path:
        """Write the file; it appears complete or not at all."""
        target = Path(path)
        if target.is_dir():
            raise InvalidInput(f"{target} is a folder; name the policy file in it")
        part = target.with_name(target.name + ".part")
        try:
            part.write_bytes(strict_json.canonical(self.to_json()))
            part.replace(target)
        except OSError as error:
            raise InvalidInput(f"cannot write the policy to {target}: {error.strerror}") from None
        return target

    @cached_property
    def digest(self) -> str:
        """The SHA-256 that the file states."""
        return str(self.to_json()["sha256"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LearnedPolicy) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"LearnedPolicy({self.policy!r}, users={self.users}, {self.guarantee.brief()})"


def load_policy(path: str | Path) -> LearnedPolicy:
    """Read a policy that was saved, written by ``tacit run --out``, or published by the service.

    >>> import tempfile, tacit
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learned = tacit.simulate("river-swim", "psrl", 100, workers=1).policy
    ...     load_policy(learned.save(f"{folder}/policy.json")).users
    100
    """
    source = Path(path)
    try:
        content = source.read_bytes()
    except IsADirectoryError:
        raise InvalidInput(f"{source} is a folder; name the policy file in it") from None
    except OSError as error:
        raise InvalidInput(f"cannot read the policy {source}: {error.strerror}") from None
    try:
        return LearnedPolicy.from_json(json.loads(content))
    except InvalidInput as error:
        raise InvalidInput(f"{source}: {error}") from None
    except (ValueError, RecursionError):
        raise InvalidInput(
            f"{source} is not a policy of tacit, or only the beginning of one: it is not JSON"
        ) from None


def most_typical(policies: Sequence[LearnedPolicy]) -> int:
    """The number of the policy that agrees most with all of them; of equal ones the first.

    Policies are compared as action probabilities of all steps and states, linear ones as gains and
    offsets, scored ones as parameters, and the one nearest to their mean is taken. So it is the
    policy that differs least, on average, from those of the other runs. Nothing but the policies
    is read.
    """
    mean = sum(_numbers(learned) for learned in policies) / len(policies)
    apart = [float(((_numbers(learned) - mean) ** 2).sum()) for learned in policies]
    return int(np.argmin(apart))


def _numbers(learned: LearnedPolicy) -> Array:
    policy = learned.policy
    if isinstance(policy, TabularPolicy):
        return np.eye(learned.sizes["actions"])[policy.actions]
    if isinstance(policy, StochasticPolicy):
        return policy.probabilities
    if isinstance(policy, ParametricPolicy):
        return policy.theta
    assert isinstance(policy, LinearPolicy)
    return np.concatenate([policy.gains, policy.offsets[..., np.newaxis]], axis=-1)


def _require_format(value: object) -> None:
    if not isinstance(value, Mapping) or value.get("format") != FORMAT:
        raise InvalidInput(
            f'this is not a policy of tacit: a policy says "format": "{FORMAT}" and is written by '
            "policy.save, by tacit run --out and by the service"
        )
    version = value.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise InvalidInput(
            f"this policy has format version {version}, but this version of tacit reads up to "
            f"{FORMAT_VERSION}; install a newer tacit"
        )
    strict_json.whole(version, "format_version", 1, FORMAT_VERSION)


def _guarantee(value: object) -> Guarantee:
    try:
        return Guarantee.from_json(value)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidInput("the guarantee in the policy cannot be read") from None


def _names(value: object, sizes: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    names = {}
    for kind, labels in strict_json.named(value, "names").items():
        if not isinstance(labels, list) or len(labels) != sizes.get(kind):
            raise InvalidInput(f"the names of {kind} must be a list, one for each of them")
        names[kind] = tuple(strict_json.text(name, f"a name of {kind}") for name in labels)
    return names
