"""Folders that results go into."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.errors import InvalidInput


def make_folder(folder: Path) -> None:
    """Make a folder, with its parents, and see that it can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"cannot make the folder {folder}: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise InvalidInput(f"the folder {folder} cannot be written to")
