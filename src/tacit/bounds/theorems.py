"""What is stated about the regret of every agent, and by whom: exponents, and orders as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple


class Scope(NamedTuple):
    """What orders are made of; ``d`` is the length of a feature vector."""

    S: int
    A: int
    H: int
    K: int
    d: int
    epsilon: float
    delta: float

    @property
    def T(self) -> int:
        """Steps of all episodes."""
        return self.K * self.H


Order = Callable[[Scope], float]
"""A rate with constant 1, logarithms of sizes left out."""


@dataclass(frozen=True)
class Theorem:
    """A regret bound of order K^users epsilon^privacy.

    The exponents are those of the leading term as K grows and epsilon shrinks, logarithms left out,
    as the paper states them, whether or not its proof stands: docs/papers says where it does not.

    Attributes:
        users: exponent of K; None where no bound is stated.
        privacy: exponent of epsilon in the private term; None for agents without privacy.
        reference: who states it, or why nobody does.
        counterpart: what a private agent would be without privacy: its price is measured against
            that.
        order: the rate as a number, where constants are not given and cannot be read off a proof.
        lower: the same for a lower bound.
        erratum: what of it does not stand, and where that is shown.
    """

    users: float | None
    privacy: float | None
    reference: str
    counterpart: str | None = None
    order: Order | None = None
    lower: Order | None = None
    erratum: str = ""


def _nodes(z: Scope) -> float:
    """The cost of a tree on tables of every stage, S^2 A H^3 / epsilon."""
    return z.S**2 * z.A * z.H**3 / z.epsilon


def _rows(z: Scope) -> float:
    """The lower bound for tables under joint privacy that Garcelon et al. quote."""
    return z.H * math.sqrt(z.S * z.A * z.K) + z.S * z.A * z.H / z.epsilon


def _linear(z: Scope) -> float:
    """sqrt(d^3 H^4 K), of least-squares value iteration without privacy."""
    return math.sqrt(z.d**3 * z.H**4 * z.K)


def _plus(z: Scope) -> float:
    """d sqrt(H^3 K), with weights."""
    return z.d * math.sqrt(z.H**3 * z.K)


_GARCELON = "Garcelon et al. 2021, Theorem 5 (tabular, local)"
_ZHOU = "Zhou 2022, Theorem 6.5 (linear mixture, joint)"
_LIAO = "Liao et al. 2021, Theorem 5.2 (linear mixture, local)"
_CONTROL = "Chowdhury et al. 2021, Theorem"
_CHOWDHURY = "Chowdhury and Zhou 2022: privacy costs a term without K"
_OURS = "ours: no regret theorem; its privacy does not depend on one"
_PAGE = "docs/papers/linear_jdp.md"

THEOREMS: Mapping[str, Theorem] = {
    "psrl": Theorem(
        0.5,
        None,
        "Osband et al. 2013: Bayesian regret",
        order=lambda z: z.H * z.S * math.sqrt(z.A * z.T),
    ),
    "ucb-vi": Theorem(
        0.5, None, "Azar et al. 2017", order=lambda z: z.H * math.sqrt(z.S * z.A * z.T)
    ),
    "obi": Theorem(0.5, None, "Garcelon et al. 2021, Theorem 5 without noise"),
    "ldp-obi": Theorem(0.5, -1.0, _GARCELON, "obi"),
    "ldp-psrl": Theorem(None, None, "Garcelon et al. 2021 leave its regret to future work", "psrl"),
    "shuffle-obi": Theorem(
        None, None, "Garcelon et al. 2021, appendix I: a sketch, no bound", "obi"
    ),
    "pucb": Theorem(
        0.5,
        -1.0,
        "Vietri et al. 2020: privacy costs a term without K",
        "ucb-vi",
        lambda z: math.sqrt(z.S**2 * z.A * z.H**3 * z.T) + _nodes(z),
        _rows,
        "the noise gives about twice the epsilon (docs/papers/pucb.md#e1)",
    ),
    "private-ucb-vi": Theorem(
        0.5,
        -1.0,
        _CHOWDHURY,
        "ucb-vi",
        lambda z: math.sqrt(z.S * z.A * z.H**3 * z.T) + _nodes(z),
        _rows,
        "the noise gives about twice the epsilon (docs/papers/private_ucb.md#e1)",
    ),
    "private-ucb-po": Theorem(
        0.5,
        -1.0,
        _CHOWDHURY,
        "ucb-vi",
        lambda z: math.sqrt(z.S**2 * z.A * z.H**3 * z.T) + _nodes(z),
        _rows,
        "the noise gives about twice the epsilon (docs/papers/private_ucb.md#e1)",
    ),
    "dp-ucbvi": Theorem(
        0.5,
        -1.0,
        "Qiao and Wang 2023: privacy costs a term without K",
        "ucb-vi",
        lambda z: math.sqrt(z.S * z.A * z.H**2 * z.T) + _nodes(z),
        _rows,
        "the noise gives about twice the epsilon (docs/papers/dp_ucbvi.md#e1)",
    ),
    "lsvi-ucb": Theorem(0.5, None, "Jin et al. 2020", order=_linear),
    "lsvi-ucb++": Theorem(0.5, None, "He et al. 2023", order=_plus),
    "dp-lsvi-batch": Theorem(
        0.6,
        -0.4,
        "Luyo et al. 2021",
        "lsvi-ucb",
        lambda z: _linear(z) + z.H**2.2 * z.d**1.6 * z.K**0.6 / z.epsilon**0.4,
        erratum=f"its constants do not give the epsilon asked for ({_PAGE}#e8)",
    ),
    "dp-lsvi-adaptive": Theorem(
        0.5,
        -0.5,
        "Ngo et al. 2022",
        "lsvi-ucb",
        lambda z: _linear(z) + z.H**3 * z.d**1.25 * math.sqrt(z.K / z.epsilon),
        erratum=f"its constants do not give the epsilon asked for ({_PAGE}#e8)",
    ),
    "dp-lsvi-ucb++": Theorem(
        0.5,
        -1.0,
        "Sahu, Theorem 3.2; its conclusion says K^(3/4)",
        "lsvi-ucb++",
        lambda z: (
            _plus(z)
            + z.H**4.5 * z.d ** (7 / 6) * math.sqrt(z.K) * math.log(1 / z.delta) / z.epsilon
        ),
        erratum=f"it does not follow: put together, its lemmas give K^(5/4) ({_PAGE}#e16)",
    ),
    "ofu-rl": Theorem(0.5, None, f"{_CONTROL} 1, without noise"),
    "private-ofu-rl": Theorem(0.5, -0.5, f"{_CONTROL} 3", "ofu-rl"),
    "certainty-equivalence": Theorem(None, None, "reference without a bound here"),
    "thompson": Theorem(None, None, "reference without a bound here"),
    "ucrl-vtr": Theorem(
        0.5, None, "Ayoub et al. 2020", order=lambda z: z.d * z.H**1.5 * math.sqrt(z.T)
    ),
    "ldp-ucrl-vtr": Theorem(0.75, -0.5, _LIAO, "ucrl-vtr"),
    "ldp-bandit": Theorem(0.75, -0.5, "Liao et al. 2021, Theorem 5.2 at H = 1", "ucrl-vtr"),
    "linopt-vi": Theorem(0.5, None, "Zhou 2022, Theorem 4.1 without noise"),
    "linopt-po": Theorem(0.5, None, "Zhou 2022, Theorem 5.1 without noise"),
    "private-linopt-vi": Theorem(0.5, -0.5, _ZHOU, "linopt-vi"),
    "private-linopt-po": Theorem(0.5, -0.5, _ZHOU, "linopt-po"),
    "tacit-local": Theorem(None, None, _OURS, "psrl"),
    "tacit-joint": Theorem(None, None, _OURS, "linopt-vi"),
    "tacit-linear": Theorem(None, None, _OURS, "lsvi-ucb++"),
    "tacit-control": Theorem(None, None, _OURS, "certainty-equivalence"),
    "policy-search": Theorem(None, None, _OURS),
    "tacit-search": Theorem(None, None, _OURS, "policy-search"),
}


def theorem(agent: Mapping[str, Any]) -> Theorem:
    """The bound for an agent with its parameters; for agents of one's own, none is known."""
    name, parameters = str(agent["name"]), agent["parameters"]
    known = THEOREMS.get(name, Theorem(None, None, "no theorem known here"))
    if name.startswith("private-linopt") and parameters.get("model") == "local":
        return replace(known, users=0.75, reference="Zhou 2022, remark on local privacy")
    return known
