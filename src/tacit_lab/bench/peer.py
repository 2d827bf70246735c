"""Asks another Python, which has a library that is compared, to measure it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import InvalidInput

_SECONDS = 3600.0


def ask(python: Path, script: str, order: Mapping[str, Any], who: str) -> dict[str, Any]:
    """What the script answers: one JSON object in, one out."""
    command = [str(python), "-W", "ignore", str(Path(script).resolve())]
    try:
        done = subprocess.run(
            command, input=json.dumps(order), capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidInput(f"{who} was not measured: {error}") from None
    if done.returncode != 0:
        why = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise InvalidInput(f"{who} was not measured: {python} says {why}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer
