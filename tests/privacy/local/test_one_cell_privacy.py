"""OneCell has exactly its epsilon, by enumeration; broken ones do not."""

import math

import numpy as np
import pytest

from privacy.local.broken_cells import mutant
from privacy.local.cells import (
    always,
    contribution,
    everybody,
    exactly_epsilon,
    lived,
    messages,
    one_cell,
    publication,
    questions,
    some_shares,
    task,
    unbiased,
    worst_at,
    worst_log_ratio,
)
from tacit.kernels.public.questions import KINDS, MOVE, REWARD
from tacit.trajectory import Trajectory


@pytest.mark.parametrize("H", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0, 20.0])
def test_the_worst_log_ratio_of_all_messages_is_the_guarantee(epsilon, H) -> None:
    for homogeneous in (True, False) if epsilon > 1.0 else (H != 3,):
        privatizer = one_cell(epsilon, task(H, homogeneous=homogeneous))
        assert exactly_epsilon(privatizer, seed=H)


def test_three_states_have_three_domains() -> None:
    """With two states moves and rewards have as many cells; here nothing can be mixed up."""
    privatizer = one_cell(5.0, task(2, S=3))
    assert [oracle.domain for oracle in privatizer.oracles] == [18, 9, 6]
    losses = [
        worst_at(privatizer, 0, publication(2, S=3, asked=always(2, *question)))
        for question in questions(2)
    ]
    assert losses == pytest.approx([5.0] * 4, abs=1e-9)
    assert max(losses) == pytest.approx(privatizer.guarantee.epsilon, abs=1e-12)
    user = lived(np.array([2, 1, 0]), np.array([0.25, 0.5]))
    for question in questions(2):
        assert unbiased(privatizer, user, publication(2, S=3, asked=always(2, *question)))


MALFORMED = {
    "none": None,
    "not numbers": np.full(9, np.nan),
    "falling": np.linspace(1, 0, 9),
    "beyond one": np.linspace(-3, 8, 9),
    "too few": np.linspace(0, 1, 4),
    "infinite": np.full(9, -np.inf),
    "shares": some_shares(3),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_whatever_shares_are_published_epsilon_is_the_same(name) -> None:
    """The id and the shares decide the question; everybody with that id is asked the same."""
    privatizer, asked = one_cell(2.0, task(3)), set()
    for coin in range(8 if name == "shares" else 3):
        public = publication(3, seed=coin, asked=MALFORMED[name])
        h, kind = privatizer.statistic.question(public, coin)
        loss = worst_at(privatizer, coin, public)
        assert loss == pytest.approx(privatizer.oracles[kind].epsilon, abs=1e-12)
        assert loss <= privatizer.guarantee.epsilon + 1e-12
        asked.add((h, kind))
    assert asked <= set(questions(3)) and (len(asked) > 3 or name != "shares")


def test_one_state_has_moves_that_say_nothing() -> None:
    """A domain padded to two cells of which one is never used: nothing is lost."""
    privatizer = one_cell(1.0, task(2, S=1))
    assert [oracle.domain for oracle in privatizer.oracles] == [2, 2, 2]
    public = publication(2, S=1, asked=always(2, 0, MOVE))
    assert worst_at(privatizer, 0, public) == 0.0
    rewards = publication(2, S=1, asked=always(2, 0, REWARD))
    loss = worst_at(privatizer, 0, rewards)
    assert loss == pytest.approx(privatizer.guarantee.epsilon, abs=1e-12)


PRIMES = np.array([p for p in range(2, 1000) if all(p % d for d in range(2, p))], dtype=np.int64)


@pytest.mark.parametrize(
    "name", ["louder", "one is louder", "by action", "step by data", "kind by data"]
)
def test_broken_privatizers_do_not_have_their_epsilon(name) -> None:
    assert exactly_epsilon(one_cell(1.0, task(2)))
    assert not exactly_epsilon(mutant(name, task(2)))


@pytest.mark.parametrize("kind", range(KINDS))
def test_what_the_broken_ones_reveal(kind) -> None:
    public = publication(2, asked=always(2, 0, kind))
    louder = worst_at(mutant("louder", task(2)), 0, public)
    assert louder == pytest.approx(2.0, abs=1e-9)
    for name in ("by action", "step by data"):
        assert worst_at(mutant(name, task(2)), 0, public) == math.inf
    curious = worst_at(mutant("kind by data", task(2)), 0, public)
    assert (curious == math.inf) == (kind != MOVE)


@pytest.mark.parametrize(("epsilon", "H"), [(0.5, 1), (3.0, 1), (3.0, 2)])
def test_two_users_with_any_rule_from_the_first_report_to_the_second_policy(epsilon, H) -> None:
    """The joint law of both messages, replacing either user.

    See docs/papers/tabular_ldp.md#e14. The first message decides policy, weights and shares of
    questions for the second user, who then also lives through something else; the rule is a random
    function.
    """
    privatizer = one_cell(epsilon, task(H))
    public = publication(H, seed=7, asked=some_shares(H))
    users = everybody(H)[:: 1 if H == 1 else 5]

    def transcripts(first: Trajectory, shift: int) -> dict[bytes, float]:
        law: dict[bytes, float] = {}
        for one, chance in messages(
            privatizer, contribution(privatizer, first, 0, public), public
        ).items():
            seed = int(np.frombuffer(one, dtype=np.int64) @ PRIMES[: len(one) // 8]) % 2**32
            answer = publication(H, seed=seed, asked=some_shares(H, seed))
            second = users[(seed + shift) % len(users)]
            sent = contribution(privatizer, second, seed, answer)
            for two, then in messages(privatizer, sent, answer).items():
                law[one + two] = chance * then
        return law

    replaced_first = [transcripts(user, 0) for user in users]
    assert abs(worst_log_ratio(replaced_first) - epsilon) < 1e-12
    replaced_second = [transcripts(users[0], shift) for shift in range(len(users))]
    assert abs(worst_log_ratio(replaced_second) - epsilon) < 1e-12
    assert sum(replaced_first[0].values()) == pytest.approx(1.0, abs=1e-12)
