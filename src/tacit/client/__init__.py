"""The device's side: act on a published policy, randomize, report once.

>>> from tacit.client import Device, Declined
>>> issubclass(Declined, Exception)
True
"""

from tacit.errors import need

need("the device client", "client")

from tacit.client.device import Device
from tacit.client.episode import Episode
from tacit.client.errors import AlreadyTookPart, CollectorRefused, Declined, NotTaken, Unreachable
from tacit.client.outbox import Delivery, Outbox
from tacit.client.search_episode import SearchEpisode
from tacit.client.terms import Terms
from tacit.client.transport import Api

__all__ = [
    "Api",
    "Declined",
    "Delivery",
    "Device",
    "Episode",
    "NotTaken",
    "Outbox",
    "CollectorRefused",
    "SearchEpisode",
    "Terms",
    "AlreadyTookPart",
    "Unreachable",
]
