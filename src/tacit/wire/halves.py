"""A local report, cut where it crosses the network: what the device sends, what is added up."""

from __future__ import annotations

from typing import Any

from tacit.arrays import IntArray
from tacit.driver import BoundAgent
from tacit.errors import InvalidInput
from tacit.privacy.base import LocalPrivatizer
from tacit.privacy.noise import Noise
from tacit.publication import Publication


def local_privatizer(bound: BoundAgent) -> LocalPrivatizer[Any]:
    """The agent's privatizer, if devices can report to it over a network.

    Sums must hold whatever devices may send, not only what honest ones do.
    """
    device, users = bound.privatizer.device, bound.task.users
    if bound.guarantee.model != "local" or device is None:
        raise InvalidInput(
            f"the agent's mechanism ({bound.guarantee.mechanism}) sends no local reports of one "
            "message; choose tacit-local, ldp-obi or ldp-psrl"
        )
    if users * device.largest >= 2**63:
        raise InvalidInput(
            f"the sums of {users:,} reports could leave the 64-bit integers if devices misbehave; "
            "plan for fewer users, or choose a larger epsilon"
        )
    return device


def device_message(
    bound: BoundAgent, contribution: IntArray, publication: Publication, coin: int, noise: Noise
) -> IntArray:
    """On the device: the randomized message about a contribution that was made with this coin.

    It is inspected as the collector will: a contribution made with another coin is caught here.
    """
    privatizer = local_privatizer(bound)
    message = privatizer.randomize(contribution, publication, noise)
    privatizer.inspect(message, publication, coin)
    return message
