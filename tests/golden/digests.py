"""Canonical bytes of what is compared, and their digests."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tacit.policies.base import Policy
from tacit.policies.linear import LinearPolicy
from tacit.policies.parametric import ParametricPolicy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.publication import Publication

LENGTH = 16
"""Hexadecimal digits that are kept: 64 bits tell one change of a result from none."""


def array_bytes(array: Any) -> bytes:
    """Shape, kind and little-endian contents; -0.0 and 0.0 differ, as do two kinds of NaN."""
    a = np.asarray(array)
    kind = {"f": "<f8", "i": "<i8", "b": "|b1"}[a.dtype.kind]
    same = np.ascontiguousarray(a, dtype=kind)
    return f"{kind}{list(same.shape)}".encode() + same.tobytes()


def named_bytes(arrays: Mapping[str, Any]) -> bytes:
    """Arrays by name, whatever their order."""
    return b"".join(name.encode() + array_bytes(arrays[name]) for name in sorted(arrays))


def digest(parts: Iterable[bytes]) -> str:
    """SHA-256 over parts, each with its length, cut to ``LENGTH`` digits."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(f"{len(part)} ".encode())
        sha.update(part)
    return sha.hexdigest()[:LENGTH]


def json_digest(value: Any) -> str:
    """Of the canonical JSON; Python writes floats so that no bit is lost."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return digest([text.encode()])


def numbers_and_words(value: Any, path: str = "") -> tuple[dict[str, Any], dict[str, str]]:
    """The leaves of a JSON value by path: what is computed, and what is said."""
    numbers: dict[str, Any] = {}
    words: dict[str, str] = {}
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in pairs:
            for mine, theirs in zip(
                (numbers, words), numbers_and_words(inner, f"{path}/{name}"), strict=True
            ):
                mine.update(theirs)
    elif isinstance(value, str):
        words[path] = value
    else:
        numbers[path] = value
    return numbers, words


def policy_bytes(policy: Policy) -> bytes:
    """A policy of any family."""
    if isinstance(policy, TabularPolicy):
        return b"table" + array_bytes(policy.actions)
    if isinstance(policy, StochasticPolicy):
        return b"stochastic" + array_bytes(policy.probabilities)
    if isinstance(policy, ParametricPolicy):
        head = f"scored key={policy.key} sigma={policy.sigma!r} ".encode()
        return head + named_bytes({**policy.arrays(), "theta": policy.theta})
    assert isinstance(policy, LinearPolicy), type(policy)
    drawn = [policy.amplitude, float(policy.key >> 32), float(policy.key & 0xFFFFFFFF)]
    return b"linear" + b"".join(map(array_bytes, (policy.gains, policy.offsets, drawn)))


def publication_bytes(publication: Publication) -> bytes:
    """One entry of the billboard."""
    head = f"{publication.version} {publication.users} ".encode()
    return head + policy_bytes(publication.policy) + named_bytes(publication.context)
