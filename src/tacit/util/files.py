"""Folders that results go into, what is said in them about how they were made, and their locks."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidInput

if TYPE_CHECKING:
    from filelock import FileLock


def require_folder(folder: Path) -> None:
    """Make a folder, with its parents, and see that it can be written to."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file, but results need a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the folder {folder}: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"the folder {folder} cannot be written to")


def read_json(path: Path, missing: str) -> dict[str, Any]:
    """Read the JSON object in a file; ``missing`` is said where there is no such file."""
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(missing) from None
    except ValueError as error:
        raise InvalidInput(f"{path} is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{path} does not describe results")
    return content


def write_text(path: Path, text: str) -> None:
    """Write a file that appears complete or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write a JSON file that appears complete or not at all."""
    write_text(path, json.dumps(data, indent=2) + "\n")


def lock_of(path: Path) -> FileLock:
    """What one process at a time may hold for a file: a lock in a file beside it, on any system."""
    from filelock import FileLock  # late: devices import this module and take no lock

    return FileLock(path.with_name(path.name + ".lock"), thread_local=False)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where a folder can be opened for that (not on Windows)."""
    if hasattr(os, "O_DIRECTORY"):
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def provenance() -> dict[str, Any]:
    """Versions and machine, for manifests."""
    return {
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("numpy", "numba", "scipy")},
        },
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        },
    }
