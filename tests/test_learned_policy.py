"""Policies come out: they act, are shown as tables, and survive their file bit for bit."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.errors import InvalidInput
from tacit.learned_policy import FORMAT_VERSION, LearnedPolicy, load_policy, most_typical
from tacit.policies.linear import LinearPolicy
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.privacy.guarantee import Guarantee
from tacit.publication import Publication
from tacit.task.task import Task
from tacit.wire.documents import sealed

SECRET = Guarantee("local", 2.0, 0.0, "coins", "by hand", requested_epsilon=2.0)
OPEN = Guarantee("none", float("inf"), 0.0, "exact", "none")

sizes = st.integers(1, 4)


def task_of(H: int, S: int, A: int, family: str = "tabular") -> Task:
    kind = "inputs" if family == "linear-quadratic" else "actions"
    return Task(family, H, {"states": S, kind: A}, homogeneous=True, users=10)


@st.composite
def learned(draw, kind: str) -> LearnedPolicy:
    H, S, A = draw(sizes), draw(sizes), draw(sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    family = "linear-quadratic" if kind == "linear" else "tabular"
    if kind == "table":
        policy = TabularPolicy(rng.integers(A, size=(H, S)))
    elif kind == "stochastic":
        policy = StochasticPolicy(rng.dirichlet(np.ones(A), size=(H, S)))
    else:
        gains, offsets = rng.normal(size=(H, A, S)), rng.normal(size=(H, A))
        policy = LinearPolicy(
            gains, offsets, amplitude=draw(st.floats(0, 9)), key=draw(st.integers(0, 2**63 - 1))
        )
    context = {"V": rng.normal(size=(2, 3)), "count": np.array(draw(st.integers(-(2**63), 2**62)))}
    names = {"states": [f"größe {s}" for s in range(S)]} if draw(st.booleans()) else {}
    return LearnedPolicy.of(
        Publication(draw(st.integers(0, 2**40)), policy, context),
        task_of(H, S, A, family),
        draw(st.sampled_from([SECRET, OPEN])),
        draw(st.integers(0, 2**50)),
        names=names,
        about={"agent": "me", "run": 3},
    )


@pytest.mark.parametrize("kind", ["table", "stochastic", "linear"])
def test_a_policy_survives_its_file_bit_for_bit(kind, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("policies")

    @settings(max_examples=30, deadline=None)
    @given(learned(kind), learned(kind))
    def check(one: LearnedPolicy, other: LearnedPolicy) -> None:
        back = load_policy(one.save(folder / "policy.json"))
        assert back == one and hash(back) == hash(one)
        assert back.policy == one.policy and back.guarantee == one.guarantee
        assert (back.users, back.names, dict(back.about)) == (
            one.users,
            {kind: tuple(names) for kind, names in one.names.items()},
            dict(one.about),
        )
        for name, array in one.publication.context.items():
            assert back.publication.context[name].tobytes() == array.tobytes()
        assert (one == other) == (one.to_json() == other.to_json())
        assert len(back.to_frame()) == len(one.to_frame()) > 0

    check()


def test_any_changed_character_is_noticed(tmp_path) -> None:
    policy = TabularPolicy(np.array([[0, 1], [1, 0]]))
    made = LearnedPolicy.of(Publication(4, policy), task_of(2, 2, 2), SECRET, 99)
    path = made.save(tmp_path / "policy.json")
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        where, bit = int(rng.integers(len(content))), 1 << int(rng.integers(8))
        changed = bytearray(content)
        changed[where] ^= bit
        path.write_bytes(bytes(changed))
        with pytest.raises(InvalidInput, match=r"policy\.json"):
            load_policy(path)
    for end in (0, 1, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.raises(InvalidInput, match="only the beginning"):
            load_policy(path)


def changed(made: LearnedPolicy, **fields) -> str:
    said = {name: entry for name, entry in made.to_json().items() if name != "sha256"}
    return json.dumps(sealed({**said, **fields}))


def test_what_is_no_policy_of_this_version_is_refused_in_a_sentence(tmp_path) -> None:
    made = LearnedPolicy.of(
        Publication(0, TabularPolicy(np.zeros((2, 3), dtype=int))), task_of(2, 3, 2), SECRET, 9
    )
    path = tmp_path / "some.json"
    for text, said in [
        ("[]", "not a policy of tacit"),
        ('{"regret": 1}', "not a policy of tacit"),
        ("PK\x03\x04", "not JSON"),
        (changed(made, format_version=FORMAT_VERSION + 1), "install a newer tacit"),
        (changed(made, format_version="new"), "format_version"),
        (changed(made, extra=1), "unknown field 'extra'"),
        (changed(made, users=-1), "users"),
        (changed(made, horizon=3), "3 rows"),
        (changed(made, sizes={"states": 3, "actions": 0}), "number of actions"),
        (changed(made, sizes={"actions": 2}), "how many states"),
        (changed(made, sizes={"states": 3, "inputs": 1}), "kind of the policy"),
        (changed(made, guarantee={"epsilon": 1}), "guarantee"),
        (changed(made, guarantee=None), "guarantee"),
        (changed(made, names={"states": ["a"]}), "names of states"),
        (changed(made, policy={"kind": "spell"}), "kind of the policy"),
    ]:
        path.write_text(text)
        with pytest.raises(InvalidInput, match=said) as refused:
            load_policy(path)
        assert str(refused.value).startswith(str(path))
    with pytest.raises(InvalidInput, match="cannot read"):
        load_policy(tmp_path / "nothing.json")
    with pytest.raises(InvalidInput, match="is a folder"):
        load_policy(tmp_path)
    with pytest.raises(InvalidInput, match="is a folder; name the policy file"):
        made.save(".")
    with pytest.raises(InvalidInput, match="cannot write"):
        made.save(tmp_path / "nowhere" / "policy.json")
    path.write_text(json.dumps(made.to_json(), indent=4))  # spelling is free, content is not
    assert load_policy(path) == made


def test_acting() -> None:
    table = TabularPolicy(np.array([[0, 1], [1, 0]]))
    made = LearnedPolicy.of(
        Publication(0, table),
        task_of(2, 2, 2),
        OPEN,
        9,
        names={"states": ("shore", "sea"), "actions": ("left", "right")},
    )
    assert [made.act(s, step) for step in (0, 1) for s in (0, 1)] == [0, 1, 1, 0]
    assert made.act("sea", 0) == 1 and made.act(np.int64(1), np.int64(0)) == 1
    for observation, step in ((2, 0), (-1, 0), (0, 2), (0.5, 0), ("lake", 0)):
        with pytest.raises(InvalidInput, match="observation|step|state"):
            made.act(observation, step)
    assert made.to_frame()["action"].tolist() == ["left", "right", "right", "left"]
    assert table.to_frame()["action"].tolist() == [0, 1, 1, 0]

    drawn = StochasticPolicy(np.array([[[0.25, 0.0, 0.75]]]))
    with pytest.raises(InvalidInput, match="rng="):
        drawn.act(0, 0)
    rng = np.random.default_rng(1)
    counts = np.bincount([drawn.act(0, 0, rng) for _ in range(4000)], minlength=3)
    assert counts[1] == 0 and abs(counts[0] - 1000) < 150

    linear = LinearPolicy(np.array([[[2.0, -1.0]]]), np.array([[0.5]]), amplitude=3.0, key=1)
    assert linear.act([1.0, 4.0], 0) == pytest.approx([-1.5])
    assert linear.to_frame().iloc[0].tolist() == [0, 0, 2.0, -1.0, 0.5]
    with pytest.raises(InvalidInput, match="2 state variables"):
        linear.act([1.0], 0)


def test_the_chosen_policy_is_the_one_nearest_to_all_and_the_first_of_equals() -> None:
    def table(*actions: int) -> LearnedPolicy:
        policy = TabularPolicy(np.array([actions]))
        return LearnedPolicy.of(Publication(0, policy), task_of(1, 3, 3), OPEN, 9)

    odd, near, middle = table(2, 2, 2), table(0, 0, 1), table(0, 0, 0)
    assert most_typical([odd, near, middle, middle]) == 2
    assert most_typical([odd, near]) == 0
    assert most_typical([near]) == 0
    gains = [np.full((1, 1, 1), k) for k in (0.0, 5.0, 1.0)]
    control = [
        LearnedPolicy.of(
            Publication(0, LinearPolicy(k)), task_of(1, 1, 1, "linear-quadratic"), OPEN, 9
        )
        for k in gains
    ]
    assert most_typical(control) == 2


@pytest.mark.parametrize(
    ("name", "agent", "parameters"),
    [
        ("river-swim", "tacit-local", {"epsilon": 4.0}),
        ("remap-walk", "private-linopt-po", {"epsilon": 50.0}),
        ("lq-scalar", "tacit-control", {"epsilon": 50.0}),
    ],
)
def test_a_result_carries_the_policies_of_its_runs(name, agent, parameters, tmp_path) -> None:
    problem = tacit.problem(name)
    result = tacit.simulate(problem, tacit.agent(agent, **parameters), 40, 3)
    assert [policy.users for policy in result.policies] == [40] * 3
    assert result.policy in result.policies
    assert {policy.guarantee for policy in result.policies} == {result.guarantee}
    assert result.guarantee.simulated
    assert [policy.about["run"] for policy in result.policies] == [0, 1, 2]
    result.save(tmp_path)
    again = tacit.Result.load(tmp_path)
    assert again.policies == result.policies
    assert tacit.load_policy(tmp_path / "policy.json") == result.policy
    rng, state = np.random.default_rng(0), np.zeros(1) if name == "lq-scalar" else 0
    result.policy.act(state, 0, rng)
