"""The package ``tacit_client``, made of the sources that it shares with tacit.

What ``tacit.client`` imports when it is loaded, and nothing else, is copied under another name: so
this distribution and a whole tacit can be installed beside each other. Packages on the way are
empty here, since what they gather is the laboratory's; nothing is compiled.

    python clients/python/shared.py FOLDER     writes it where you can look at it
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[2] / "src"
ROOT = "tacit.client"
LEFT_OUT = {"tacit.client.fitted_encoder"}
"""Only imported where it is there: it fits agents, which needs the laboratory."""

INSTEAD = {
    "tacit": '"""The device\'s side of tacit, alone."""\n\n'
    "from tacit_client._version import __version__ as __version__\n"
    "from tacit_client.client import *  # noqa: F403\n"
    "from tacit_client.client import __all__ as __all__\n",
    "tacit.kernels.compiler": '"""Nothing is compiled on a device."""\n\n'
    "def kernel(function):\n"
    '    """The function as it is."""\n'
    "    return function\n",
    **{
        f"tacit.{name}": '"""Part of what devices share with tacit."""\n'
        for name in ("privacy", "privacy.finite", "statistics")
    },
}


def path_of(module: str) -> Path | None:
    """The file of a module, None if it is no module of ours."""
    plain = SOURCE / Path(*module.split("."))
    found = [plain.with_suffix(".py"), plain / "__init__.py"]
    return next((path for path in found if path.is_file()), None)


def loaded_by(text: str) -> set[str]:
    """Modules of ours that a file imports when it is loaded."""
    found: set[str] = set()
    for node in ast.parse(text).body:
        for one in [node, *(node.body if isinstance(node, ast.Try) else [])]:
            if isinstance(one, ast.ImportFrom) and one.module and one.level == 0:
                found |= {one.module, *(f"{one.module}.{alias.name}" for alias in one.names)}
            elif isinstance(one, ast.Import):
                found |= {alias.name for alias in one.names}
    return {name for name in found if name.partition(".")[0] == "tacit" and path_of(name)}


def closure() -> dict[str, str]:
    """Every module that is shared, with its text under the new name."""
    found: dict[str, str] = {}
    waiting = {ROOT, "tacit._version"}
    while waiting:
        module = waiting.pop()
        path = path_of(module)
        assert path is not None
        text = found[module] = INSTEAD.get(module) or path.read_text(encoding="utf-8")
        parents = module.split(".")
        wanted = {".".join(parents[:n]) for n in range(1, len(parents))} | loaded_by(text)
        waiting |= wanted - found.keys() - LEFT_OUT
    return {name: _renamed(text) for name, text in found.items()}


def _renamed(text: str) -> str:
    return re.sub(r"^(\s*(?:from|import)) tacit\b(?!_)", r"\1 tacit_client", text, flags=re.M)


def write(folder: Path) -> None:
    """The package as files."""
    for module, text in closure().items():
        path = path_of(module)
        assert path is not None
        place = folder / "tacit_client" / path.relative_to(SOURCE / "tacit")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    (folder / "tacit_client" / "py.typed").touch()


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # somebody looks at the files, and builds nothing
    pass
else:

    class Shared(BuildHookInterface):  # type: ignore[type-arg]
        """Puts the shared sources into the wheel."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Write them beside this file, from where they are packed."""
            folder = Path(self.root) / "build"
            write(folder)
            build_data["force_include"][str(folder / "tacit_client")] = "tacit_client"


if __name__ == "__main__":
    write(Path(sys.argv[1]))
