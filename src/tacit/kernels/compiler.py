"""One decorator for every kernel, and where compiled code is kept.

Numba's own cache does not notice an edit in a function that a cached function calls in another
file. So the cache folder is named by a hash of the package's sources: any edit starts a fresh one.
Left out are parts that a kernel cannot reach (tested), so that their edits compile nothing.
Without numba (the device client) the decorator returns the function as it is.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import platformdirs

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).resolve().parents[1]
ABOVE = frozenset({"auditing", "cli", "client", "report", "service", "sweep", "wire"})
"""Parts that hold no kernels and that no kernel's module imports."""
BELOW = frozenset({"kernels", "arrays", "grid", "errors"})
"""All that the kernels of this folder can reach; those of other folders may call anything."""
_KEEP_SECONDS = 30 * 24 * 3600


def source_hash(root: Path = PACKAGE, only: frozenset[str] = frozenset()) -> str:
    """Hash of the names and contents of the Python files under ``root`` that can matter."""
    sha = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        part = path.relative_to(root).parts[0].removesuffix(".py")
        if part in ABOVE or (only and part not in only):
            continue
        content = path.read_bytes()
        sha.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        sha.update(content)
    return sha.hexdigest()[:16]


@functools.cache
def cache_folder(only: frozenset[str] = frozenset()) -> Path:
    """Folder for compiled code: $TACIT_CACHE_DIR, else the user's cache, else a fresh one."""
    chosen = os.environ.get("TACIT_CACHE_DIR")
    base = Path(chosen) if chosen else platformdirs.user_cache_path("tacit", appauthor=False)
    folder = base / f"kernels-{source_hash(only=only)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except OSError:
        # A fresh private folder: compiled code must never be loaded from one others can write to.
        return Path(tempfile.mkdtemp(prefix="tacit-kernels-"))
    _forget_old(base)
    return folder


def _forget_old(base: Path) -> None:
    """Remove caches of sources that nobody has run for a month."""
    with contextlib.suppress(OSError):  # somebody else may be tidying up as well
        for other in base.glob("kernels-*"):
            if time.time() - other.stat().st_mtime > _KEEP_SECONDS:
                shutil.rmtree(other, ignore_errors=True)


def kernel(function: F) -> F:
    """Compile ``function`` (numba: cached on disk, without the GIL), keeping its type.

    The plain-Python original stays reachable as ``function.py_func``. Division by zero follows
    IEEE rules in compiled code; kernels guard it so that plain Python agrees.
    """
    try:
        import numba
    except ImportError:
        return function
    before = numba.config.CACHE_DIR
    below = function.__module__.startswith("tacit.kernels.")
    numba.config.CACHE_DIR = str(cache_folder(BELOW if below else frozenset()))
    try:
        return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
    finally:
        numba.config.CACHE_DIR = before
