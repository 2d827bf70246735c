"""The two files of a ledger: made, copied, and forged as an intruder could."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.privacy.charges import PureCharge
from tacit.privacy.filter import Budget
from tacit.privacy.ledger import (
    Ledger,
)
from tacit.privacy.ledger_lines import FORMAT

BUDGET = Budget(1.0, 1e-5, pure=0.5, mu_squared=0.02)
TENTH = PureCharge(0.1)


def create(path: Path, **options: Any) -> Ledger:
    return Ledger.create(path, budget=BUDGET, task="task", **options)


def head_of(path: Path) -> Path:
    return path.with_name(path.name + ".head")


def copy_to(path: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    for file in (path, head_of(path)):
        shutil.copy(file, folder / file.name)
    return folder / path.name


def line_of(content: dict[str, Any], previous: str) -> bytes:
    """A line as the format describes it, written down here a second time on purpose."""

    def canonical(data: dict[str, Any]) -> bytes:
        return json.dumps(data, sort_keys=True, separators=(",", ":")).encode() + b"\n"

    linked = {**content, "previous": previous}
    return canonical({**linked, "hash": hashlib.sha256(canonical(linked)).hexdigest()})


def forge(path: Path, change: Callable[[list[dict[str, Any]]], object]) -> None:
    """Change lines and make every hash and the head fit again, as an intruder could."""
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(records)
    raw, previous = b"", "0" * 64
    for record in records:
        content = {k: v for k, v in record.items() if k not in ("hash", "previous")}
        raw += line_of(content, previous)
        previous = json.loads(raw.splitlines()[-1])["hash"]
    path.write_bytes(raw)
    head_of(path).write_bytes(line_of({"format": FORMAT, "length": len(raw)}, previous))
