"""One decorator for every kernel, and where compiled code is kept.

Numba's own cache does not notice an edit in a function that a cached function calls in another
file. So the cache folder is named by a hash of the package's sources: any edit starts a fresh one.
Left out are parts that a kernel cannot reach (tested), so that their edits compile nothing.
Without numba (the device client) the decorator returns the function as it is.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import platformdirs

F = TypeVar("F", bound=Callable[..., Any])

PACKAGE = Path(__file__).resolve().parents[1]
ABOVE = frozenset({"auditing", "cli", "client", "wire"})
"""Parts that hold no kernels and that no kernel's module imports."""
BELOW = frozenset({"kernels", "arrays", "grid", "errors", "trajectory"})
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
    """Folder for compiled code: $TACIT_CACHE_DIR, the user's cache, or one for temporary files."""
    chosen = os.environ.get("TACIT_CACHE_DIR")
    base = Path(chosen) if chosen else platformdirs.user_cache_path("tacit", appauthor=False)
    name = f"kernels-{source_hash(only=only)}"
    for parent in (base, _temporary()):  # a home may be read-only
        with contextlib.suppress(OSError):
            folder = parent / name
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                os.utime(folder)
                _forget_old(parent)
                return folder
    return Path(tempfile.mkdtemp(prefix="tacit-kernels-"))


def _temporary() -> Path:
    """A folder for temporary files that is found again; compiled code is loaded from it.

    So nobody else may be able to write to it: one that was there already and is not ours, or is
    open to others, is left alone for a fresh one.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"  # Windows has such folders per user
    folder = Path(tempfile.gettempdir(), f"tacit-{user}")
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    ours = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    if stat.S_ISDIR(status.st_mode) and ours and (os.name == "nt" or not status.st_mode & 0o077):
        return folder
    return Path(tempfile.mkdtemp(prefix="tacit-kernels-"))


def _forget_old(base: Path) -> None:
    """Remove caches of sources that nobody has run for a month."""
    with contextlib.suppress(OSError):  # somebody else may be tidying up as well
        for other in base.glob("kernels-*"):
            if time.time() - other.stat().st_mtime > _KEEP_SECONDS:
                shutil.rmtree(other, ignore_errors=True)


class Compilation:
    """Hears from numba when code is compiled: tells who watches, and adds up the seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._began: list[float] = []

    def notify(self, event: Any) -> None:
        """A compilation begins or ends; one may lie within another, in the same thread."""
        if event.is_start:
            if not self.seconds and not self._began and _watched():
                print("tacit: compiling once, about 20 s", file=sys.stderr, flush=True)
            self._began.append(time.perf_counter())
        elif event.is_end and self._began:
            began = self._began.pop()
            if not self._began:
                self.seconds += time.perf_counter() - began


compilation = Compilation()


def working_time() -> float:
    """A clock in seconds that stands still while code is compiled."""
    return time.perf_counter() - compilation.seconds


def _watched() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@functools.cache
def _listen() -> None:
    from numba.core import event

    event.Listener.register(Compilation)
    event.register("numba:compile", compilation)


def _once(compile_one: Callable[[Any], Any], file: Path, place: int) -> Callable[[Any], Any]:
    """``compile_one``, for one process at a time: those that wait find it in the cache.

    Numba's index loses what two processes add to it at once. Every kernel has a byte of ``file``
    that is locked meanwhile; nobody waits where a system has no such locks, or in a circle.
    """
    from numba.core import event

    def compile_alone(signature: Any) -> Any:
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(ImportError, OSError):
                import fcntl

                descriptor = _opened(file)
                try:
                    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                except BlockingIOError:
                    with event.trigger_event("numba:compile"):  # for whoever measures time
                        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, place)
                stack.callback(fcntl.lockf, descriptor, fcntl.LOCK_UN, 1, place)
            if gc.isenabled():  # a sixth of the time of compiling goes into looking for garbage
                gc.disable()
                stack.callback(gc.enable)
            return compile_one(signature)

    return compile_alone


@functools.cache
def _opened(file: Path) -> int:
    """Stays open: closing it anywhere would give up every lock of this process."""
    return os.open(file, os.O_RDWR | os.O_CREAT, 0o600)


def kernel(function: F) -> F:
    """Compile ``function`` (numba: cached on disk, without the GIL), keeping its type.

    The plain-Python original stays reachable as ``function.py_func``. Division by zero follows
    IEEE rules in compiled code; kernels guard it so that plain Python agrees.
    """
    try:
        import numba
    except ImportError:
        return function
    _listen()
    before = numba.config.CACHE_DIR
    below = function.__module__.startswith("tacit.kernels.")
    folder = cache_folder(BELOW if below else frozenset())
    numba.config.CACHE_DIR = str(folder)
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = before
    place = zlib.crc32(f"{function.__module__}.{function.__qualname__}".encode())
    compiled.compile = _once(compiled.compile, folder / "locks", place)
    return cast(F, compiled)
