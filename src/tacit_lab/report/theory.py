"""What the theorems say about regret: exponents of K and epsilon, agent by agent.

The exponents are those of the leading terms as K grows and epsilon shrinks, logarithms left out, as
stated by each paper, whether or not its proof stands: docs/papers says where it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Theorem:
    """A regret bound of order K^users epsilon^privacy.

    Attributes:
        users: exponent of K; None where no bound is stated.
        privacy: exponent of epsilon in the private term; None for agents without privacy.
        reference: who states it, or why nobody does.
    """

    users: float | None
    privacy: float | None
    reference: str


_GARCELON = "Garcelon et al. 2021, Theorem 5 (tabular, local)"
_ZHOU = "Zhou 2022 (linear mixture, joint)"
_CHOWDHURY = "Chowdhury and Zhou 2022: privacy costs a term without K"
_OURS = "ours: no regret theorem; its privacy does not depend on one"

THEOREMS: Mapping[str, Theorem] = {
    "psrl": Theorem(0.5, None, "Osband et al. 2013: Bayesian regret"),
    "ucb-vi": Theorem(0.5, None, "Azar et al. 2017"),
    "obi": Theorem(0.5, None, "Garcelon et al. 2021 without noise"),
    "ldp-obi": Theorem(0.5, -1.0, _GARCELON),
    "ldp-psrl": Theorem(None, None, "Garcelon et al. 2021 leave its regret to future work"),
    "shuffle-obi": Theorem(None, None, "Garcelon et al. 2021, appendix I: a sketch, no bound"),
    "pucb": Theorem(0.5, -1.0, "Vietri et al. 2020: privacy costs a term without K"),
    "private-ucb-vi": Theorem(0.5, -1.0, _CHOWDHURY),
    "private-ucb-po": Theorem(0.5, -1.0, _CHOWDHURY),
    "dp-ucbvi": Theorem(0.5, -1.0, "Qiao and Wang 2023: privacy costs a term without K"),
    "lsvi-ucb": Theorem(0.5, None, "Jin et al. 2020"),
    "lsvi-ucb++": Theorem(0.5, None, "He et al. 2023"),
    "dp-lsvi-batch": Theorem(0.6, -0.4, "Luyo et al. 2021"),
    "dp-lsvi-adaptive": Theorem(0.5, -0.5, "Ngo et al. 2022"),
    "dp-lsvi-ucb++": Theorem(0.5, -0.5, "Sahu, abstract; its conclusion says K^(3/4)"),
    "ofu-rl": Theorem(0.5, None, "Chowdhury et al. 2021 without noise"),
    "private-ofu-rl": Theorem(0.5, -0.5, "Chowdhury et al. 2021, Theorem 3"),
    "certainty-equivalence": Theorem(None, None, "reference without a bound here"),
    "thompson": Theorem(None, None, "reference without a bound here"),
    "ucrl-vtr": Theorem(0.5, None, "Ayoub et al. 2020"),
    "ldp-ucrl-vtr": Theorem(0.75, -0.5, "Liao et al. 2021 (linear mixture, local)"),
    "ldp-bandit": Theorem(0.75, -0.5, "Liao et al. 2021 at H = 1"),
    "linopt-vi": Theorem(0.5, None, "Zhou 2022 without noise"),
    "linopt-po": Theorem(0.5, None, "Zhou 2022 without noise"),
    "private-linopt-vi": Theorem(0.5, -0.5, _ZHOU),
    "private-linopt-po": Theorem(0.5, -0.5, _ZHOU),
    "tacit-local": Theorem(None, None, _OURS),
    "tacit-joint": Theorem(None, None, _OURS),
    "tacit-linear": Theorem(None, None, _OURS),
    "tacit-control": Theorem(None, None, _OURS),
    "policy-search": Theorem(None, None, _OURS),
    "tacit-search": Theorem(None, None, _OURS),
}

COUNTERPARTS: Mapping[str, str] = {
    "ldp-obi": "obi",
    "ldp-psrl": "psrl",
    "shuffle-obi": "obi",
    "pucb": "ucb-vi",
    "private-ucb-vi": "ucb-vi",
    "private-ucb-po": "ucb-vi",
    "dp-ucbvi": "ucb-vi",
    "tacit-local": "psrl",
    "ldp-ucrl-vtr": "ucrl-vtr",
    "ldp-bandit": "ucrl-vtr",
    "private-linopt-vi": "linopt-vi",
    "private-linopt-po": "linopt-po",
    "tacit-joint": "linopt-vi",
    "dp-lsvi-batch": "lsvi-ucb",
    "dp-lsvi-adaptive": "lsvi-ucb",
    "dp-lsvi-ucb++": "lsvi-ucb++",
    "tacit-linear": "lsvi-ucb++",
    "private-ofu-rl": "ofu-rl",
    "tacit-control": "certainty-equivalence",
    "tacit-search": "policy-search",
}
"""What each private agent would be without privacy; its price is measured against that."""


def theorem(agent: Mapping[str, Any]) -> Theorem:
    """The bound for an agent with its parameters; for agents of one's own, none is known."""
    name, parameters = str(agent["name"]), agent["parameters"]
    if name.startswith("private-linopt") and parameters.get("model") == "local":
        return Theorem(0.75, -0.5, "Zhou 2022, remark on local privacy")
    return THEOREMS.get(name, Theorem(None, None, "no theorem known here"))
