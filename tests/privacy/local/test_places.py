"""Terminal states are one place: what devices answer, exactly as private, and what is counted."""

import dataclasses
import itertools

import numpy as np
import pytest

from privacy.local.cells import (
    always,
    contribution,
    everybody,
    lived,
    messages,
    moments,
    one_cell,
    publication,
    questions,
    task,
    weight,
    worst_log_ratio,
)
from tacit.kernels.public.questions import MOVE, REWARD, WEIGHT_STEPS
from tacit.kernels.raw.cells import cell_index
from tacit.privacy.finite.cell_answers import domains
from tacit.statistics.one_step import EachStep
from tacit.task.pairs import make_pairs, met_places


def ended(H, terminal, allowed=None, S=3, homogeneous=True):
    facts = {"terminal": np.isin(np.arange(S), terminal)}
    if allowed is not None:
        facts["allowed"] = np.array(allowed, dtype=bool)
    return dataclasses.replace(task(H, S=S, homogeneous=homogeneous), known=facts)


def test_places_are_the_states_that_go_on_and_one_end() -> None:
    flags = np.array([[1, 1], [0, 0], [0, 1], [0, 0]], dtype=bool)
    places = met_places(make_pairs(flags))
    assert places.state.tolist() == [0, 2, 1] and places.live == 2
    assert places.place.tolist() == [0, 2, 1, 2]
    assert places.first.tolist() == [0, 2, 3, 3]
    assert places.number.tolist() == [[0, 1], [-1, 2], [-1, -1]]
    assert places.spread(np.array([[7, 8, 9]])).tolist() == [[7, 9, 8, 9]]
    whole = met_places(make_pairs(np.ones((3, 2), dtype=bool)))
    assert whole.state.tolist() == whole.place.tolist() == [0, 1, 2] and whole.live == 3


@pytest.mark.parametrize(
    ("terminal", "cells"), [([], (18, 9, 6)), ([1], (13, 7, 5)), ([0, 2], (5, 3, 3))]
)
def test_every_answer_has_one_number_and_the_end_has_one_answer(terminal, cells) -> None:
    places = met_places(ended(2, terminal).pairs)
    assert domains(places) == cells
    N, L = len(places.state), places.live
    for kind, size in enumerate(cells):
        rhos = range(1 if kind == MOVE else 2)
        nexts = range(1 if kind == REWARD else N)
        known = [*itertools.product(range(L), rhos, nexts), *([(L, 0, 0)] if N > L else [])]
        assert [cell_index(kind, *cell, N) for cell in known] == list(range(size))


@pytest.mark.parametrize("terminal", [[1], [0, 2]])
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_worst_log_ratio_is_the_guarantee_where_states_end(epsilon, terminal) -> None:
    """All lives of three states, also impossible ones that leave an end again."""
    privatizer, H = one_cell(epsilon, ended(2, terminal)), 2
    losses = []
    for question in questions(H):
        public, laws = publication(H, S=3, asked=always(H, *question)), {}
        for user in everybody(H, 3):
            sent = contribution(privatizer, user, 3, public)
            laws.setdefault(sent.tobytes(), sent)
        found = [messages(privatizer, sent, public) for sent in laws.values()]
        losses.append(worst_log_ratio(found))
    declared = [privatizer.oracles[kind].epsilon for _, kind in questions(H)]
    assert losses == pytest.approx(declared, abs=1e-12)
    assert max(losses) == pytest.approx(privatizer.guarantee.epsilon, abs=1e-12)
    assert privatizer.guarantee.epsilon <= epsilon


@pytest.mark.parametrize("question", questions(2))
def test_whoever_is_over_tells_nothing_else(question) -> None:
    privatizer = one_cell(1.0, ended(2, [1]))
    public = publication(2, S=3, asked=always(2, *question))
    over = {
        contribution(privatizer, lived(np.array([s, s, n]), np.full(2, r)), 0, public).tobytes()
        for s, n, r in itertools.product([1], range(3), (0.0, 0.4, 1.0))
    }
    assert len(over) == 1


@pytest.mark.parametrize("homogeneous", [True, False])
@pytest.mark.parametrize("question", questions(2))
def test_counts_of_pairs_are_unbiased_and_the_end_counts_nowhere(question, homogeneous) -> None:
    allowed = [[1, 1], [1, 1], [0, 1]]  # three pairs: (0, 0), (0, 1), (2, 1)
    privatizer = one_cell(2.0, ended(2, [1], allowed, homogeneous=homogeneous))
    (h, kind), places = question, privatizer.statistic.places
    public = publication(2, S=3, asked=always(2, *question))
    public.policy.actions.flags.writeable = True
    public.policy.actions[:] = [[0, 0, 1], [1, 0, 1]]
    pairs = [[0, None, 2], [1, None, 2]][h]
    for states in ([0, 2, 1], [2, 0, 0], [0, 1, 1], [1, 1, 1]):
        user = lived(np.array(states), np.array([1.0, 0.0]))
        mean, _, _ = moments(privatizer, user, public)
        expected = {b.name: np.zeros(b.shape) for b in privatizer.layout.blocks}
        assert expected["moves"].shape == (1, 3, 3) and expected["first"].shape == (2,)
        s, x = states[h], pairs[states[h]]
        if x is not None:
            chance = public.context["occupancy"][h, s] / WEIGHT_STEPS
            if kind != REWARD:
                n = places.place[states[h + 1]]
                expected["moves"][0, x, n] = weight(privatizer, "moves", kind, chance)
            if kind != MOVE:
                g, rho = (0 if homogeneous else h), (1, 0)[h]
                expected["rewards"][g, x, rho] = weight(privatizer, "rewards", kind, chance)
            if h == 0:
                expected["first"][places.place[s]] = 1.0
        for name in ("moves", "rewards", "first"):
            assert mean[name] == pytest.approx(expected[name], abs=1e-9)


def test_the_worst_pair_answers_every_question_differently() -> None:
    for terminal in ([], [0], [2], [1, 2], [0, 1]):
        of = ended(3, terminal)
        one_step, each = one_cell(1.0, of).statistic, EachStep(of)
        for question in questions(3):
            public = publication(3, S=3, asked=always(3, *question))
            found = []
            for life in one_step.worst_pair():
                out = np.zeros(one_step.layout.size, dtype=np.int64)
                one_step.contribute(life, public, 0, out)
                found.append(one_step.layout.views(out)["cell"])
            assert not (found[0] * found[1]).any()
        first, second = each.worst_pair()
        assert first.states[0] != second.states[0]
