"""Log lines on stderr, for people or as JSON for programs. They hold public facts only.

What is logged: start, publications, and failures and recoveries once per change. No line says who
sent something, when, or what it said.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any, Literal

Form = Literal["text", "json"]
log = logging.getLogger("tacit.service")


def event(name: str, sentence: str, *, level: str = "info", **facts: Any) -> None:
    """Log that something happened: its name for programs, a sentence, and public facts."""
    more = {"event": name, "facts": facts}
    log.log(logging.getLevelNamesMapping()[level.upper()], "%s", sentence, extra=more)


class _Lines(logging.Formatter):
    """``time LEVEL event: sentence (fact=value)``, or the same as one JSON object per line."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        name, facts = getattr(record, "event", record.name), getattr(record, "facts", {})
        message = record.getMessage()
        if self._form == "json":
            fixed = {"time": at, "level": record.levelname.lower(), "event": name}
            return json.dumps({**fixed, "message": message, **facts})
        shown = ", ".join(f"{key}={value}" for key, value in facts.items())
        return f"{at} {record.levelname} {name}: {message}" + (f" ({shown})" if shown else "")


def configure(form: Form) -> None:
    """Say what the service has to say, and of its libraries only what is wrong."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines(form))
    logging.basicConfig(handlers=[handler])
    log.setLevel(logging.INFO)
