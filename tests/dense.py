"""Kernels over pairs, called with tables of all states and actions, as formulas are written."""

from types import SimpleNamespace

import numpy as np

from tacit.kernels.public import obi, planning, posterior, tacit_local
from tacit.kernels.raw import cells, counts
from tacit.task.pairs import full_rows, make_pairs, met_places
from tacit.trajectory import Lives

NONE = np.zeros((0, 0))


def all_pairs(S, A):
    """Every action is allowed everywhere."""
    return make_pairs(np.ones((S, A), dtype=bool))


def flat(table):
    """[G, S, A, ...] as [G, X, ...]: a view, so that outputs are written through it."""
    return table.reshape(len(table), table.shape[1] * table.shape[2], *table.shape[3:])


class Dense:
    """A kernel and its plain original, behind one way to call them."""

    def __init__(self, kernel, call):
        self._call = call
        self._kernel = kernel
        self.py_func = lambda *given: call(kernel.py_func, *given)

    def __call__(self, *given):
        return self._call(self._kernel, *given)


def _rows(P):
    return full_rows(*flat(P).shape)


def _visited(reward, visits, transitions):
    squares = np.zeros((0, visits.size))
    return planning.VisitTables(flat(reward), squares, flat(visits), flat(transitions))


def _induction(kernel, P, R, Q, V):
    pairs = all_pairs(*R.shape[1:])
    kernel(pairs.first, _rows(P), P.ravel(), NONE, flat(R), 0.0, flat(Q), V)


def _greedy(kernel, Q, ties, actions):
    pairs = all_pairs(*Q.shape[1:])
    return kernel(pairs.first, pairs.action, flat(Q), ties, actions)


def _values(kernel, P, R, actions, V):
    number = all_pairs(*R.shape[1:]).number
    kernel(number, _rows(P), P.ravel(), flat(R), 0.0, actions, V)


def _stochastic(kernel, P, R, probabilities, V):
    pairs = all_pairs(*R.shape[1:])
    model = (_rows(P), P.ravel(), flat(R), 0.0)
    kernel(pairs.first, pairs.action, *model, probabilities, V)


def _optimistic(kernel, reward, visits, transitions, known, width, P, R):
    rows, out = _rows(transitions), P.reshape(-1)
    sums = _visited(reward, visits, transitions)
    kernel(sums, rows, flat(known), width, out, flat(R))


def _sample(kernel, reward, squares, visits, transitions, known, prior, rng, P, R):
    rows, out = _rows(transitions), P.reshape(-1)
    sums = planning.VisitTables(flat(reward), flat(squares), flat(visits), flat(transitions))
    kernel(sums, rows, flat(known), prior, rng, out, NONE, flat(R))


def _visits(kernel, states, actions, rewards, horizon, *out):
    pairs = all_pairs(*out[2].shape[1:])
    lives, sums = Lives(states, actions, rewards), planning.VisitTables(*map(flat, out))
    kernel(lives, horizon, pairs.first, pairs.number, sums)


def _obi(kernel, reward, visits, transitions, *rest):
    pairs, *_, Q, V = all_pairs(*visits.shape[1:]), *rest
    sums = _visited(reward, visits, transitions)
    kernel(pairs.first, _rows(transitions), sums, 0.0, *rest[:-2], flat(Q), V)


def _obi_values(kernel, reward, visits, transitions, noise, n, rule, Q, V):
    _obi(kernel, reward, visits, transitions, noise, n, visits.shape[2], rule, Q, V)


def _met(given):
    return posterior.NoisyCounts(*map(flat, given))


def _noisy(kernel, given, rng, y, P, R):
    kernel(_met(given), rng, y, flat(P), flat(R))


def _occupancy(kernel, first, users, P, actions, floor, f, steps):
    number = all_pairs(*P.shape[1:3]).number
    kernel(first, users, number, _rows(P), P.ravel(), actions, floor, f, steps)


def _mean(kernel, given, P, R):
    kernel(_met(given), flat(P), flat(R))


def _directional(kernel, given, z, P, R, Q, V):
    first = all_pairs(*R.shape[1:]).first
    kernel(_met(given), z, first, flat(P), flat(R), 0.0, flat(Q), V)


def _stakes(kernel, given, f, P, V, policy, moves, rewards):
    number = all_pairs(*P.shape[1:3]).number
    model = (_rows(P), P.ravel())
    kernel(_met(given), f, number, *model, V, policy, flat(moves), flat(rewards))


def _share(kernel, moves, rewards, f, policy, weighing, asked):
    number = all_pairs(*moves.shape[1:]).number
    kernel(flat(moves), flat(rewards), f, number, policy, weighing, asked)


def _by_pairs(sums):
    """Sums [2, G, S, A, ...], whose last two parts have no pairs."""
    return cells.CellSums(
        *(part.reshape(*part.shape[:2], -1, *part.shape[4:]) for part in sums[:-2]), *sums[-2:]
    )


def _hits(kernel, hits, n, kind, h, policy, occupancy, weighing, sums):
    places = met_places(all_pairs(*sums.moves.shape[2:4]))
    told = places.state, places.number, policy, occupancy
    kernel(hits, n, kind, h, *told, weighing, _by_pairs(sums))


def _estimates(kernel, sums, joint, move, reward, out, first):
    kernel(_by_pairs(sums), joint, move, reward, _met(out), first)


dense = SimpleNamespace(
    add_hits=Dense(cells.add_hits, _hits),
    estimate_cells=Dense(cells.estimate_cells, _estimates),
    backward_induction=Dense(planning.backward_induction, _induction),
    greedy=Dense(planning.greedy, _greedy),
    policy_values=Dense(planning.policy_values, _values),
    stochastic_policy_values=Dense(planning.stochastic_policy_values, _stochastic),
    optimistic_model=Dense(planning.optimistic_model, _optimistic),
    sample_model=Dense(posterior.sample_model, _sample),
    add_visits=Dense(counts.add_visits, _visits),
    obi_induction=Dense(obi.obi_induction, _obi),
    tight_induction=Dense(obi.tight_induction, _obi),
    obi_values=Dense(obi.obi_values, _obi_values),
    sample_noisy_model=Dense(posterior.sample_noisy_model, _noisy),
    predict_occupancy=Dense(posterior.predict_occupancy, _occupancy),
    mean_model=Dense(tacit_local.mean_model, _mean),
    directional_induction=Dense(tacit_local.directional_induction, _directional),
    stakes=Dense(tacit_local.stakes, _stakes),
    share_questions=Dense(tacit_local.share_questions, _share),
)
