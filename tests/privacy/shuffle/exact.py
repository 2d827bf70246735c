"""The privacy of tiny shuffled batches by brute force: every dataset, every multiset of reports."""

import itertools

import numpy as np

Law = dict[tuple[int, ...], float]


def add_user(law: Law, pmf: np.ndarray) -> Law:
    """The law of how often each output occurs, with one more user."""
    after: Law = {}
    for counts, chance in law.items():
        for output, weight in enumerate(pmf):
            more = (*counts[:output], counts[output] + 1, *counts[output + 1 :])
            after[more] = after.get(more, 0.0) + chance * weight
    return after


def worst_delta(
    pmf: np.ndarray, users: int, epsilon: float, pairs: list[tuple[int, int]] | None = None
) -> float:
    """The largest delta over all neighbouring datasets; ``pmf`` [inputs, outputs]."""
    inputs, outputs = pmf.shape
    pairs = pairs or [(x, y) for x in range(inputs) for y in range(inputs) if x != y]
    worst = 0.0
    for others in itertools.combinations_with_replacement(range(inputs), users - 1):
        law: Law = {(0,) * outputs: 1.0}
        for x in others:
            law = add_user(law, pmf[x])
        for x, y in pairs:
            one, two = add_user(law, pmf[x]), add_user(law, pmf[y])
            gains = (p - np.exp(epsilon) * two.get(counts, 0.0) for counts, p in one.items())
            worst = max(worst, sum(g for g in gains if g > 0.0))
    return worst
