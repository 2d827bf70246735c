"""A local report, cut where it crosses the network: what the device sends, what is added up."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.arrays import IntArray
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.privacy.base import Report, Secret, TwoHalves
from tacit.privacy.noise import Noise
from tacit.publication import Publication


def two_halves(bound: BoundAgent) -> TwoHalves:
    """The agent's privatizer, if devices can report to it over a network.

    Sums must hold whatever devices may send, not only what honest ones do.
    """
    privatizer, users = bound.privatizer, bound.task.users
    if bound.guarantee.model != "local" or not isinstance(privatizer, TwoHalves):
        raise InvalidInput(
            f"the agent's mechanism ({bound.guarantee.mechanism}) sends no local reports of one "
            "message; choose tacit-local, ldp-obi or ldp-psrl"
        )
    if users * privatizer.largest >= 2**63:
        raise InvalidInput(
            f"the sums of {users:,} reports could leave the 64-bit integers if devices misbehave; "
            "plan for fewer users, or choose a larger epsilon"
        )
    return privatizer


def device_message(
    bound: BoundAgent, contribution: IntArray, publication: Publication, coin: int, noise: Noise
) -> IntArray:
    """On the device: the randomized message about a contribution that was made with this coin.

    It is inspected as the collector will: a contribution made with another coin is caught here.
    """
    halves = two_halves(bound)
    message = halves.randomize(contribution, publication, noise)
    halves.inspect(message, publication, coin)
    return message


def inspect_message(
    bound: BoundAgent, message: IntArray, publication: Publication, coin: int
) -> None:
    """At the collector, on arrival: refuse what no device of ours can have sent."""
    two_halves(bound).inspect(message, publication, coin)


def collect(bound: BoundAgent, message: IntArray, publication: Publication, coin: int) -> Report:
    """At the collector: the report as the agent absorbs it, inspected first."""
    return two_halves(bound).collect(message, publication, coin)


def fold(
    bound: BoundAgent,
    secret: Secret,
    messages: Sequence[IntArray],
    publication: Publication,
    coins: Sequence[int],
) -> Secret:
    """Collect and absorb many messages of one publication; sums do not depend on how many."""
    return two_halves(bound).fold(secret, messages, publication, coins)
