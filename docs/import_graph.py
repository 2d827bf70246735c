"""The folders of ``src`` and the imports between them, written into docs/reference/imports.md.

    python docs/import_graph.py

``tests/test_architecture.py`` compares the page with the code and walks the same imports. A *part*
is a folder directly under ``src/tacit``, a module beside them, or a package beside the library.
Imports count wherever they stand: at the top of a file, inside a function, for type checkers only,
or as the name of a module in a string that is imported on first use. The package's own ``__init__``
is no part: it is the lazy front door, and nobody inside goes through it.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PACKAGE = SOURCE / "tacit"
PAGE = ROOT / "docs" / "reference" / "imports.md"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}

Edge = tuple[str, str]


@functools.cache
def imports(path: Path, everywhere: bool = True) -> frozenset[str]:
    """Every tacit module a file imports, wherever in the file, or only when it is loaded."""
    found = set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: use absolute imports"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value.partition(":")[0])
    return frozenset(name for name in found if name in MODULES and name != "tacit")


def part(module: str) -> str:
    """The part a module belongs to."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "tacit" else package


def edges(everywhere: bool = True) -> set[Edge]:
    """Which part imports which other part."""
    found = set()
    for name, path in MODULES.items():
        if name != "tacit":
            found |= {(part(name), part(other)) for other in imports(path, everywhere)}
    return {(one, other) for one, other in found if one != other}


def parts() -> list[str]:
    """All parts, sorted."""
    return sorted({part(name) for name in MODULES if name != "tacit"})


def reach(graph: set[Edge]) -> dict[str, set[str]]:
    """What every part leads to, over any number of imports."""
    found: dict[str, set[str]] = {}
    for start in parts():
        seen: set[str] = set()
        frontier = [start]
        while frontier:
            here = frontier.pop()
            new = {other for one, other in graph if one == here} - seen
            seen |= new
            frontier += new
        found[start] = seen
    return found


def on_a_cycle(graph: set[Edge]) -> set[Edge]:
    """The imports that lead back to where they start; there must be none."""
    leads = reach(graph)
    return {(one, other) for one, other in graph if one in leads[other]}


def layers(graph: set[Edge]) -> dict[str, int]:
    """Height of every part: one above all that it imports."""
    height = dict.fromkeys(parts(), 0)
    for _ in height:
        for here in height:
            below = [height[other] + 1 for one, other in graph if one == here]
            height[here] = max([0, *below])
    return height


def summary(path: Path) -> str:
    """The first sentence of a module, without what stands in brackets."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return re.sub(r" \([^()]*\)", "", text.partition("\n\n")[0].replace("\n", " "))


def folder_table() -> str:
    """Every folder and every module beside them, with what it says of itself."""
    rows = ["| part | what it is |", "|---|---|"]
    for name, path in sorted(MODULES.items(), key=lambda item: _place(*item)):
        where = path.parent if path.name == "__init__.py" else path
        if name != "tacit" and (path.name == "__init__.py" or path.parent == PACKAGE):
            shown = where.relative_to(PACKAGE if where.is_relative_to(PACKAGE) else SOURCE)
            slash = "/" if where.is_dir() else ""
            rows.append(f"| `{shown}{slash}` | {summary(path)} |")
    return "\n".join(rows)


def _place(name: str, path: Path) -> tuple[bool, bool, str]:
    """The library's folders first, then the modules beside them, then the other package."""
    return not path.is_relative_to(PACKAGE), path.parent == PACKAGE, name


def import_table() -> str:
    """One row per part, lowest layer first."""
    graph, loaded = edges(), edges(everywhere=False)
    height = layers(graph)
    rows = ["| layer | part | imports | only later, or for types |", "|---|---|---|---|"]
    for here in sorted(height, key=lambda p: (height[p], p)):
        now = _names(other for one, other in loaded if one == here)
        late = _names(other for one, other in graph - loaded if one == here)
        rows.append(f"| {height[here]} | `{here}` | {now} | {late} |")
    return "\n".join(rows)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def filled(text: str) -> str:
    """The page with both tables as they are now."""
    for name, table in (("folders", folder_table()), ("imports", import_table())):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
