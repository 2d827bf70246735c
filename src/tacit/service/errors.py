"""What the service raises: each has its own name, so that a caller can tell them apart."""

from __future__ import annotations

from tacit.errors import InvalidInput, TacitError


class UnknownTask(InvalidInput):
    """A request names a task that is not served here."""


class UnknownVersion(InvalidInput):
    """A request names a policy version that was never published."""


class Unavailable(TacitError):
    """The database cannot be used now; nothing was lost, and the same request may be repeated."""


class Refused(TacitError):
    """The stored state must not be used as it is; the message says what to do."""
