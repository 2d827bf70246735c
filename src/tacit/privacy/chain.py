"""The ledger's files: hash-chained lines, the head beside them, and the lock.

What the lines and the head mean, and why a torn append can be told from damage, is said in
``ledger.py``.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacit.errors import InvalidInput, TacitError

FORMAT = "tacit-ledger-1"
START = "0" * 64  # what stands for the line before the header
_ALWAYS = {"sequence", "kind", "time", "previous", "hash"}
FIELDS = {
    "header": {"format", "budget", "unit", "relation", "participations", "task"},
    "reserve": {"node", "charge", "cost"},
    "commit": {"node"},
    "cancel": {"node"},
    "close": {"node", "charge", "cost"},
}


class LedgerDamaged(TacitError):
    """The files are not what was written: changed, cut, reordered, or of an unknown kind."""


class LedgerUnavailable(TacitError):
    """The ledger cannot be used from here, now: locked, closed, forked, or a write failed."""


def check_line(
    line: Mapping[str, Any], sequence: int, previous: str, kinds: tuple[str, ...]
) -> None:
    """Whether a line that is sound in itself may stand here."""
    kind = line.get("kind")
    if kind not in kinds:
        raise InvalidInput(f"kind {kind!r} where one of {', '.join(kinds)} must be")
    if kind == "header" and line.get("format") != FORMAT:
        raise InvalidInput(f"format {line.get('format')!r}; this version reads {FORMAT} only")
    if set(line) != _ALWAYS | FIELDS[kind]:
        raise InvalidInput(f"fields {', '.join(sorted(line))} are not those of a {kind}")
    if line["sequence"] != sequence or line["previous"] != previous:
        raise InvalidInput(f"number {line['sequence']} here: a line is missing, doubled or moved")


def line_bytes(data: Mapping[str, Any]) -> bytes:
    """The one spelling of a line."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii") + b"\n"


def seal(content: Mapping[str, Any], previous: str) -> dict[str, Any]:
    """The content with the hash of the line before and its own."""
    linked = {**content, "previous": previous}
    return {**linked, "hash": hashlib.sha256(line_bytes(linked)).hexdigest()}


def parse_line(line: bytes) -> dict[str, Any]:
    """A whole line as it was written, and no other spelling of it."""
    try:
        data = json.loads(line.decode("ascii"))
        canonical = isinstance(data, dict) and line_bytes(data) == line
    except (ValueError, RecursionError):
        canonical = False
    if not canonical:
        raise InvalidInput("not a line as this ledger writes them: it was changed or cut")
    content = {name: value for name, value in data.items() if name not in ("hash", "previous")}
    if data != seal(content, data.get("previous", "")):
        raise InvalidInput("the content does not match its hash: it was changed")
    return dict(data)


def head_path(path: Path) -> Path:
    """Where the head of a ledger lies."""
    return path.with_name(path.name + ".head")


def write_head(path: Path, length: int, last: str) -> None:
    """Replace the head in one step: after a crash there is the old one or the new one."""
    new = path.with_name(path.name + ".head.new")
    with open(new, "wb") as file:
        file.write(line_bytes(seal({"format": FORMAT, "length": length}, last)))
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, head_path(path))
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_head(path: Path) -> tuple[int, str]:
    """How many bytes were acknowledged, and the hash of the last line in them."""
    name = head_path(path).name
    try:
        head = parse_line(head_path(path).read_bytes())
    except FileNotFoundError:
        raise LedgerDamaged(
            f"{name} is missing: it was removed, or creating the ledger was interrupted before "
            "anything could be charged (then delete the ledger and create it again)"
        ) from None
    except InvalidInput as error:
        raise LedgerDamaged(f"{name}: {error}") from error
    if set(head) != {"format", "length", "previous", "hash"} or head["format"] != FORMAT:
        raise LedgerDamaged(f"{name} is not a head of format {FORMAT}")
    return int(head["length"]), str(head["previous"])


def locked(path: Path, flags: int) -> int:
    """Open the file for this process alone."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
    except FileNotFoundError:
        raise InvalidInput(f"there is no ledger at {path.name}") from None
    except FileExistsError:
        raise InvalidInput(f"{path.name} exists: open it, or choose another name") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise LedgerUnavailable(f"{path.name} is open already, here or elsewhere") from None
    return fd
