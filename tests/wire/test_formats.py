"""Formats: there and back bit for bit, and everything else refused with a sentence."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.errors import InvalidInput
from tacit.policies.linear import LinearPolicy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy, uniform_policy
from tacit.publication import Publication
from tacit.task.task import Task
from tacit.trajectory import Trajectory
from tacit.wire import documents, messages, strict_json
from tacit.wire.report_rules import same_rules

TASK = Task(
    "tabular", 2, {"states": 3, "actions": 2}, True, 50, {"reward": np.array([[0.1, 1 / 3]])}, 2
)
ID = "c0" * 32


def through_json(value):
    return json.loads(json.dumps(value, allow_nan=False))


@given(
    hnp.arrays(
        st.sampled_from(["<f8", "<i8", "|b1", ">f8"]), hnp.array_shapes(min_dims=0, min_side=0)
    )
)
@settings(max_examples=60, deadline=None)
def test_arrays_come_back_bit_for_bit(array) -> None:
    back = strict_json.array_from_json(
        through_json(strict_json.array_to_json(array)), "x", array.shape
    )
    assert back.dtype == array.dtype.newbyteorder("=") and back.shape == array.shape
    assert back.tobytes() == array.astype(back.dtype).tobytes()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dtype": "|O"}, "type"),
        ({"dtype": ["<f8"]}, "type"),
        ({"dtype": "<f4"}, "type"),
        ({"shape": [3]}, "characters"),
        ({"shape": [-2]}, "shape"),
        ({"shape": [True, 2]}, "shape"),
        ({"shape": [2.0]}, "shape"),
        ({"shape": "2"}, "shape"),
        ({"shape": [1] * 9}, "shape"),
        ({"shape": [10**9, 10**9]}, "at most"),
        ({"data": 7}, "base64 text"),
        ({"data": "A" * 23 + "!"}, "not base64"),
        ({"data": base64.b64encode(bytes(16)).decode()[:-3] + "B=="}, "canonical"),
        ({"more": 1}, "unknown field"),
    ],
)
def test_bad_arrays_are_refused(change, words) -> None:
    good = strict_json.array_to_json(np.zeros(2))
    with pytest.raises(InvalidInput, match=words):
        strict_json.array_from_json({**good, **change}, "x")


def test_other_bad_arrays() -> None:
    flags = strict_json.array_to_json(np.array([True, False]))
    flags["data"] = base64.b64encode(b"\x01\x02").decode()
    with pytest.raises(InvalidInput, match="flags"):
        strict_json.array_from_json(flags, "x")
    with pytest.raises(InvalidInput, match="must be an object"):
        strict_json.array_from_json([1, 2], "x")
    with pytest.raises(InvalidInput, match="lacks the field 'data'"):
        strict_json.array_from_json({"dtype": "<f8", "shape": []}, "x")
    with pytest.raises(InvalidInput, match="not sent"):
        strict_json.array_to_json(np.array(["a"]))
    with pytest.raises(InvalidInput, match=r"must be \[2\]"):
        strict_json.array_from_json(strict_json.array_to_json(np.zeros(3)), "x", (2,))


def test_tasks_come_back() -> None:
    back = documents.task_from_json(through_json(documents.task_to_json(TASK)))
    assert back == TASK and back.digest() == TASK.digest()
    assert "duration" not in documents.task_to_json(TASK), "a task without one keeps its id"
    week = replace(TASK, duration=604800.0)
    back = documents.task_from_json(through_json(documents.task_to_json(week)))
    assert back == week and back.duration == 604800.0
    assert documents.task_from_json(documents.task_to_json(TASK)).duration == 0.0
    ids = {
        documents.task_id({**terms(), "task": documents.task_to_json(task)})
        for task in (TASK, week)
    }
    assert len(ids) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"family": 3},
        {"family": ""},
        {"horizon": 0},
        {"horizon": 2.0},
        {"horizon": True},
        {"homogeneous": 1},
        {"users": "50"},
        {"users": 2**80},
        {"participations": None},
        {"sizes": [3, 2]},
        {"sizes": {"states": 0}},
        {"known": {"reward": [1.0]}},
        {"known": {f"n{i}": 0 for i in range(65)}},
        {"duration": -1},
        {"duration": "7d"},
        {"duration": None},
        {"duration": 1e300},
        {"extra": 1},
    ],
)
def test_bad_tasks_are_refused(change) -> None:
    with pytest.raises(InvalidInput):
        documents.task_from_json({**documents.task_to_json(TASK), **change})


def terms() -> dict:
    return {
        "name": "Übung",
        "task": documents.task_to_json(TASK),
        "agent": {"name": "tacit-local", "parameters": {"epsilon": 1.0}},
        "reward_range": [0.0, 1.0],
        "absorbing_state": 0,
        "unit": "user",
    }


def spelt_as(form: int) -> bytes:
    """By hand: of these terms only whole numbers with a point are spelt differently."""
    text = json.dumps(
        {"wire": form, **terms()}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return (text if form == 1 else re.sub(r"\b(\d)\.0\b", r"\1", text)).encode()


def test_the_task_id_is_a_hash_of_the_terms_and_of_nothing_else() -> None:
    assert documents.task_id(terms(), 1) == hashlib.sha256(spelt_as(1)).hexdigest()
    expected = hashlib.sha256(spelt_as(2)).hexdigest()
    assert documents.task_id(terms()) == expected
    assert documents.task_id({**through_json(terms()), "labels": None, "opens": None}) == expected
    for name in terms():
        changed = {**terms(), name: "other"}
        assert documents.task_id(changed) != expected
        del changed[name]
        with pytest.raises(InvalidInput, match=name):
            documents.task_id(changed)
    with pytest.raises(InvalidInput, match="JSON"):
        documents.task_id({**terms(), "reward_range": [0.0, float("nan")]}, 1)
    with pytest.raises(InvalidInput, match="RFC 8785"):
        documents.task_id({**terms(), "reward_range": [0.0, float("nan")]})
    with pytest.raises(InvalidInput, match="RFC 8785"):
        documents.task_id({**terms(), "absorbing_state": 2**60})


def test_devices_that_number_their_answers_otherwise_hash_the_terms_otherwise() -> None:
    """An older device of tacit-local declines a task with terminal states: its id is another."""
    ends = {"terminal": np.arange(TASK.sizes["states"]) == 0}
    task = documents.task_to_json(replace(TASK, known=ends))
    ended = {**terms(), "task": task}
    joint = {**ended, "agent": {"name": "tacit-joint", "parameters": {}}}
    forms = [documents.terms_forms(one) for one in (terms(), ended, joint)]
    assert forms == [(2, 1), (3,), (2, 1)]
    assert documents.task_id(ended) == documents.task_id(ended, 3) != documents.task_id(ended, 2)
    assert documents.task_id(joint) == documents.task_id(joint, 2)


@pytest.mark.parametrize(
    "policy", [TabularPolicy(np.array([[0, 1, 1], [1, 0, 0]])), uniform_policy(2, 3, 2)]
)
def test_publications_come_back(policy) -> None:
    made = Publication(7, policy, {"occupancy": np.arange(6).reshape(2, 3), "V": np.ones(2) / 3})
    back = documents.publication_from_json(
        through_json(documents.publication_to_json(made, ID)), TASK, ID
    )
    assert back.version == 7 and back.policy == policy
    assert set(back.context) == {"occupancy", "V"}
    for name, array in made.context.items():
        assert back.context[name].tobytes() == array.tobytes()
        assert back.context[name].dtype == array.dtype


def test_bad_publications_are_refused() -> None:
    good = documents.publication_to_json(
        Publication(0, TabularPolicy(np.zeros((2, 3), dtype=int))), ID
    )
    documents.publication_from_json(good, TASK, ID)
    stochastic = documents.publication_to_json(Publication(0, uniform_policy(2, 3, 2)), ID)[
        "policy"
    ]
    unlike = documents.publication_to_json(Publication(0, uniform_policy(2, 3, 3)), ID)["policy"]
    documents.publication_from_json({**good, "policy": stochastic}, TASK, ID)
    for change, words in [
        ({"task_id": "d0" * 32}, "policy of task"),
        ({"version": -1}, "version"),
        ({"version": 1.0}, "version"),
        ({"policy": {"kind": "table", "actions": [[0, 0, 0]]}}, "2 rows"),
        ({"policy": {"kind": "table", "actions": [[0, 0, 0], [0, 0]]}}, "3 actions"),
        ({"policy": {"kind": "table", "actions": [[0, 0, 0], [0, 0, 2]]}}, "an action = 2"),
        ({"policy": {"kind": "table", "actions": [[0, 0, 0], [0, 0, -1]]}}, "an action"),
        ({"policy": {"kind": "table", "actions": [[0, 0, 0], [0, 0, True]]}}, "an action"),
        ({"policy": {"kind": "pickle", "actions": []}}, "kind"),
        ({"policy": unlike}, "shape"),
        ({"policy": []}, "kind"),
        ({"context": {"x": 1}}, "object"),
        ({"seed": 1}, "unknown field"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            documents.publication_from_json({**good, **change}, TASK, ID)
    bad = StochasticPolicy(np.full((2, 3, 2), 0.5))
    body = documents.publication_to_json(Publication(0, bad), ID)
    body["policy"]["probabilities"] = strict_json.array_to_json(np.full((2, 3, 2), 0.6))
    with pytest.raises(InvalidInput, match="sum to 1"):
        documents.publication_from_json(body, TASK, ID)
    linear = documents.publication_to_json(Publication(0, LinearPolicy(np.zeros((2, 1, 3)))), ID)
    with pytest.raises(InvalidInput, match="kind"):
        documents.publication_from_json(linear, TASK, ID)
    with pytest.raises(InvalidInput, match="SHA-256"):
        documents.publication_from_json({**good, "sha256": "0" * 64}, TASK, ID)
    documents.publication_from_json(documents.sealed(good), TASK, ID)


def test_ids_are_random_and_checked() -> None:
    drawn = {messages.new_report_id() for _ in range(100)}
    assert len(drawn) == 100 and all(messages.report_id(i) == i for i in drawn)
    for bad in ("A" * 32, "a" * 31, "a" * 33, "a" * 32 + "\n", 7, None):
        with pytest.raises(InvalidInput, match="32 lower-case"):
            messages.report_id(bad)


def test_the_coin_is_the_documented_hash() -> None:
    digest = hashlib.sha256(b"task:id").digest()
    expected = int(digest[:8].hex(), 16) // 2
    assert messages.coin("task", "id") == expected < 2**63
    assert messages.coin("task", "id") != messages.coin("task", "ie")


def test_messages_come_back_and_others_are_refused() -> None:
    values = np.array([0, -1, 2**63 - 1, -(2**63)])
    text = messages.pack_message(values)
    assert base64.b64decode(text) == values.astype("<i8").tobytes()
    assert np.array_equal(messages.unpack_message(text), values)
    assert messages.unpack_message("").shape == (0,)
    for bad in (7, None, "AAAA", "A", text[:-1], text + "\n", text[:-4], "é" * len(text)):
        with pytest.raises(InvalidInput):
            messages.unpack_message(bad)
    with pytest.raises(InvalidInput):
        messages.pack_message(values.astype(float))


def test_trajectories_have_one_length_and_are_judged_by_it_alone() -> None:
    lived = Trajectory([0, 2, 1], [1, 0], [0.5, float("nan")])
    text = messages.pack_trajectory(lived, 2)
    assert len(base64.b64decode(text)) == 4 * 3 + 4 * 2 + 8 * 2
    back = messages.unpack_trajectory(text, 2)
    assert back.states.tolist() == [0, 2, 1] and back.actions.tolist() == [1, 0]
    assert np.array_equal(back.rewards, lived.rewards, equal_nan=True)
    wild = Trajectory([-5, 10**6, 3], [99, -1], [1e300, -1e300])
    assert len(messages.pack_trajectory(wild, 2)) == len(text)
    assert messages.unpack_trajectory(messages.pack_trajectory(wild, 2), 2).states.tolist() == [
        -5,
        10**6,
        3,
    ]
    with pytest.raises(InvalidInput, match="padded to 3 steps"):
        messages.pack_trajectory(lived, 3)
    for horizon in (1, 3):
        with pytest.raises(InvalidInput, match="characters"):
            messages.unpack_trajectory(text, horizon)


def test_rules_are_the_same_up_to_rounding_only() -> None:
    """Chances in units of 2^-64 may differ by 2^-40, weights by 2^-40 of themselves."""
    weighed = {"report": "sliding", "likely": str(3 << 40), "unlikely": str(1 << 40)}
    assert same_rules(weighed, {**weighed, "likely": str((3 << 40) + 2)})
    for name, off in (("likely", 4), ("unlikely", 2), ("unlikely", 1 << 23)):
        assert not same_rules(weighed, {**weighed, name: str(int(weighed[name]) + off)})
    chances = {"cells": {"step": {"own": str(1 << 62)}}}
    for off, same in (((1 << 24) - 1, True), (1 << 24, False)):
        other = {"cells": {"step": {"own": str((1 << 62) + off)}}}
        assert same_rules(chances, other) is same
