"""A statement in the fields that others ask for.

``opendp`` has the fields of an entry in the OpenDP registry of deployments, ``nist`` the factors
that NIST SP 800-226 tells a reader to look at, which has no form of its own. What a statement
cannot know (who runs the deployment, what for, how useful it is) is None: an operator fills it in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tacit.errors import InvalidInput, UnknownName
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.sentences import at_most, covered, over
from tacit.util.durations import in_words

_TRUST = {
    "local": "Nobody but the device is trusted: reports are randomized before they are sent.",
    "shuffle": "A shuffler is trusted to hide who sent which randomized report.",
    "joint": "A curator is trusted with whole trajectories (joint differential privacy): what it "
    "publishes and what other users get to see is protected, not what a user is shown.",
}
_MODEL = {"local": "Local", "joint": "Central", "shuffle": None}


def form(guarantee: Guarantee, name: str) -> dict[str, Any]:
    """The statement in the fields of "nist" or "opendp"."""
    if name not in FORMS:
        raise UnknownName("form", name, FORMS)
    if guarantee.model == "none" or guarantee.simulated:
        why = "was made in simulation" if guarantee.simulated else "promises no privacy"
        raise InvalidInput(f"this statement {why}, so there is no deployment to describe")
    return FORMS[name](guarantee)


def unfilled(fields: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """The names of fields that an operator has to fill in."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from unfilled(value, f"{above}{name}.")
        elif value is None:
            yield above + name


def _unit(guarantee: Guarantee) -> str:
    what = "one participation of a user" if guarantee.unit == "participation" else "one user"
    where = f" in {covered(guarantee)}" if guarantee.parts else ""
    times, rule = guarantee.participations, guarantee.rule
    often = "" if times is None else f"; up to {times:,} participations are covered"
    if rule is not None:
        where = f" in one period of {in_words(rule.period)}" if rule.period else ""
        rest = "further periods cost more" if rule.period else "all of it is covered together"
        often = f"; a person may take part {rule.in_words()}, and {rest}"
    return (
        f"All data of {what}{where}, replaced by any other ({guarantee.relation})"
        + (often if times != 1 and guarantee.unit == "user" else "")
        + "."
    )


def _parameters(guarantee: Guarantee) -> dict[str, float]:
    named = {"epsilon": guarantee.epsilon}
    return named if guarantee.delta == 0.0 else {**named, "delta": guarantee.delta}


def _mechanism(guarantee: Guarantee) -> str:
    noise = ", ".join(f"{name} {value}" for name, value in guarantee.noise.items())
    return f"{guarantee.mechanism}. Noise: {noise or 'see the mechanism'}."


def _curve(guarantee: Guarantee) -> str:
    if guarantee.mu is not None:
        return f"Gaussian differential privacy with mu = {guarantee.mu!r} holds at every epsilon."
    return f"At epsilon 0 delta is at most {at_most(guarantee.delta(0.0), 6)}."


def _numbers(guarantee: Guarantee) -> str:
    """The whole curve, and what the parameters are over."""
    whose = over(guarantee)
    return f"{_curve(guarantee)} The parameters are{whose}." if whose else _curve(guarantee)


def _variant(guarantee: Guarantee) -> str:
    return "Pure DP" if guarantee.delta == 0.0 else "Approximate DP"


def _nist(guarantee: Guarantee) -> dict[str, Any]:
    """The factors of its pyramid, from the top down."""
    return {
        "privacy_parameters": {
            **_parameters(guarantee),
            "variant": _variant(guarantee),
            "details": _numbers(guarantee),
        },
        "unit_of_privacy": {
            "unit": guarantee.unit,
            "neighboring_relation": guarantee.relation,
            "details": _unit(guarantee),
        },
        "algorithms": {
            "mechanism": _mechanism(guarantee),
            "composition": f"{guarantee.accountant}.",
            "correctness": None,
        },
        "utility_and_bias": None,
        "trust_model": {
            "model": guarantee.model,
            "details": _TRUST[guarantee.model],
            "assumptions": list(guarantee.assumptions),
        },
        "side_channels": None,
        "security_and_access_control": None,
        "data_collection_exposure": None,
    }


def _opendp(guarantee: Guarantee) -> dict[str, Any]:
    """An entry; the registry's files are YAML, of which JSON is a part."""
    revealed = ", ".join(guarantee.revealed)
    whose = f", and are{over(guarantee)}" if over(guarantee) else ""
    return {
        "url_slug": None,
        "deployment": {
            "basic": dict.fromkeys(
                (
                    "name",
                    "data_curators",
                    "description",
                    "intended_use",
                    "data_product_type",
                    "data_product_region",
                    "data_product_sector",
                    "publication_date",
                )
            ),
            "dp_variant": {
                "variant_name": _variant(guarantee),
                "data_domain": "Trajectories of states, actions and rewards, one per participation",
                "unprotected_quantities": "Who takes part, and when"
                + (f"; told to the learner in advance: {revealed}" if revealed else ""),
            },
            "privacy_loss": {
                "privacy_unit": "User-level" if guarantee.unit == "user" else None,
                "privacy_unit_details": _unit(guarantee),
                "number_of_privacy_units": None,
                "privacy_parameters": _parameters(guarantee),
                "privacy_parameters_details": _numbers(guarantee),
            },
            "deployment_model": {
                "model_name": _MODEL[guarantee.model],
                "model_name_details": _TRUST[guarantee.model],
                "trust_assumptions": " ".join(f"{text}." for text in guarantee.assumptions),
                "actors": None,
                "release_type": "Many releases",
                "release_type_details": "Policies are published while users come; the parameters "
                f"cover all of them together{whose}.",
                "data_source_type": "Dynamic",
                "data_source_type_details": "Users come one after another.",
                "access_type": "Non-interactive",
                "access_type_details": "Everybody sees the same published policies.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": None,
                "mechanisms": _mechanism(guarantee),
                "composition": f"{guarantee.accountant}.",
                "post_processing": "Policies are computed from releases alone.",
                "justification": None,
                "utility": None,
                "additional_information": guarantee.statement(),
            },
            "administrative": dict.fromkeys(
                ("evidence_sources", "status", "registry_authors", "tier")
            ),
        },
    }


FORMS: dict[str, Callable[[Guarantee], dict[str, Any]]] = {"nist": _nist, "opendp": _opendp}
"""By the word that asks for them."""
