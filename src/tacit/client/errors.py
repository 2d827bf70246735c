"""Why a device does not take part, or could not be heard."""

from __future__ import annotations

from tacit.errors import TacitError


class Declined(TacitError):
    """The device protects its user: it will not take part on these terms."""


class AlreadyTookPart(Declined):
    """All participations that the terms allow have been used, on this device."""


class NotTaken(Declined):
    """The collector would not take the report that an episode begun now leads to.

    Attributes:
        reason: its name for why, for example ``closed`` or ``population_reached``.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"no episode begins: {message}")
        self.reason = reason


class Unreachable(TacitError):
    """The collector did not answer, or not like a collector; trying again later may help."""


class CollectorRefused(TacitError):
    """The collector understood and said no.

    Attributes:
        code: the collector's name for the reason, for example ``unauthorized``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"the collector refused ({code}): {message}")
        self.code = code
