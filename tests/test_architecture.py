"""The architecture as a test: imports follow the arrow, the wall has one door, the page is true."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

import tacit
from tacit.kernels.compiler import ABOVE, BELOW

ROOT = Path(__file__).resolve().parents[1]
_spec = importlib.util.spec_from_file_location("import_graph", ROOT / "docs" / "import_graph.py")
graph = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(graph)
MODULES, PACKAGE, imports = graph.MODULES, graph.PACKAGE, graph.imports
PAGE = (graph.ROOT / "docs" / "architecture.md").read_text()


def closure(start: str, everywhere: bool = True) -> set[str]:
    """What importing a module pulls in, with the packages on the way (not the lazy root)."""
    seen, frontier = set(), [start]
    while frontier:
        name = frontier.pop()
        if name in seen or name == "tacit":
            continue
        seen.add(name)
        frontier += [*imports(MODULES[name], everywhere), name.rpartition(".")[0] or name]
    return seen


def under(name: str, *packages: str) -> bool:
    """Whether a module is in one of these parts of the library, or anywhere in it."""
    if not packages:
        return name == "tacit" or name.startswith("tacit.")
    return any(name == f"tacit.{p}" or name.startswith(f"tacit.{p}.") for p in packages)


BLIND = sorted(
    name
    for name in MODULES
    if under(name, "planners", "policies", "publication", "release", "task", "kernels.public")
)
RAW = ("trajectory", "statistics", "privacy", "problems", "simulation", "learner", "agents")
RAW += ("kernels.raw",)


@pytest.mark.parametrize("module", BLIND)
def test_planning_cannot_reach_raw_data_by_imports(module: str) -> None:
    assert {name for name in closure(module) if under(name, *RAW)} == set()


def test_the_import_walk_sees_what_it_must() -> None:
    assert Path(tacit.__file__).parent == PACKAGE
    assert len(BLIND) >= 10
    assert "tacit.trajectory" in closure("tacit.statistics.counts")
    assert "tacit.kernels.raw.rollout" in closure("tacit.simulation.loops.visits")


NOUNS = ("policies", "publication", "task", "trajectory")
ARROW = {
    # part: what it may import, besides itself and COMMON
    "kernels.public": (),
    "kernels.raw": ("trajectory",),
    "task": (),
    "policies": ("task",),
    "statistics": NOUNS,
    "privacy": (*NOUNS, "release", "statistics"),
    "planners": ("policies", "publication", "release", "task"),
    "problems": ("policies", "streams", "task", "trajectory"),
    "agents": (*NOUNS, "learner", "planners", "privacy", "release", "schedules", "statistics"),
}
COMMON = ("arrays", "errors", "grid", "kernels", "util", "validate")


@pytest.mark.parametrize("package", ARROW)
def test_imports_follow_the_arrow(package: str) -> None:
    allowed = (package, *COMMON, *ARROW[package])
    for name, path in MODULES.items():
        if under(name, package):
            assert {i for i in imports(path) if not under(i, *allowed)} == set(), name


def test_nothing_in_the_library_imports_the_command_line() -> None:
    for name, path in MODULES.items():
        if under(name) and not under(name, "cli", "__main__"):
            assert not any(under(i, "cli") for i in imports(path)), name


def calls(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    return [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]


def test_only_privatizers_make_releases() -> None:
    makers = {name for name, path in MODULES.items() if "Release" in calls(path)}
    assert makers
    assert all(under(name, "privacy") for name in makers)


def test_no_global_or_unseeded_generator_anywhere() -> None:
    allowed = {"np.random.default_rng", "np.random.Generator", "np.random.SeedSequence"}
    allowed |= {"np.random.PCG64DXSM"}
    for name, path in MODULES.items():
        used = {call.partition("(")[0] for call in calls(path)}
        used = {call for call in used if call.startswith(("np.random.", "random."))}
        assert used <= allowed, name
        assert "np.random.default_rng()" not in path.read_text(), name


def test_regret_is_never_made_positive_by_force() -> None:
    for name, path in MODULES.items():
        if under(name, "simulation") or name.startswith("tacit_lab.report"):
            assert not {"abs", "np.abs", "np.absolute"} & set(calls(path)), name


def test_modules_stay_small() -> None:
    for name, path in MODULES.items():
        assert path.read_text().count("\n") <= 500, name


def test_only_the_command_line_goes_through_the_lazy_root() -> None:
    """``from tacit import problem`` would lead a planner to everything, unseen by the walk."""
    for name, path in MODULES.items():
        if under(name, "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert "tacit" not in {alias.name for alias in node.names}, name
            if isinstance(node, ast.ImportFrom) and node.module == "tacit":
                assert {f"tacit.{alias.name}" for alias in node.names} <= set(MODULES), name


def test_the_kernel_cache_notices_every_module_a_kernel_can_reach() -> None:
    with_kernels = [name for name, path in MODULES.items() if "\n@kernel\n" in path.read_text()]
    reached = set().union(*(closure(name, everywhere=False) for name in with_kernels))
    assert len(with_kernels) >= 25
    assert {name for name in reached if under(name, *ABOVE)} == set()
    inner = [name for name in with_kernels if under(name, "kernels")]
    reached = set().union(*(closure(name, everywhere=False) for name in inner))
    assert {name for name in reached if not under(name, *BELOW)} == set()


def test_no_cycle_between_folders() -> None:
    assert graph.on_a_cycle(graph.edges()) == set(), "a cycle: import the other way round"


def test_layers_and_cycles_of_a_small_graph() -> None:
    names = ("arrays", "errors", "validate", "task")
    a, b, c, d = names
    small = {(b, a), (c, b), (d, c), (d, a)}
    assert graph.on_a_cycle(small) == set()
    assert [graph.layers(small)[name] for name in names] == [0, 1, 2, 3]
    assert graph.on_a_cycle(small | {(c, d)}) == {(d, c), (c, d)}


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        "from tacit import arrays\nif TYPE_CHECKING:\n    import tacit.task.task\n"
        "def late():\n    from tacit.release import Release\n"
        "    return 'tacit.simulation.plot:plot'\n"
    )
    late = {"tacit.task.task", "tacit.release", "tacit.simulation.plot"}
    assert imports(file, everywhere=False) == {"tacit.arrays"}
    assert imports(file) == {"tacit.arrays"} | late


def test_the_page_shows_the_folders_and_the_imports_of_the_code() -> None:
    page = graph.PAGE.read_text()
    assert graph.filled(page) == page, "run: python docs/import_graph.py"
    for one, other in graph.edges():
        (row,) = re.findall(rf"^\| \d+ \| `{one}` \|.*$", page, re.MULTILINE)
        assert f"`{other}`" in row


def defined(path: Path) -> set[str]:
    """Functions, classes, and methods as ``Class.method``."""
    found = set()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, kinds):
            found.add(node.name)
            within = node.body if isinstance(node, ast.ClassDef) else []
            found |= {f"{node.name}.{n.name}" for n in within if isinstance(n, kinds)}
    return found


def file_of(shown: str) -> Path:
    """A file as the page names it: from ``src`` where it is of a package beside the library."""
    inside = PACKAGE / shown
    return inside if inside.exists() else graph.SOURCE / shown


LANE = 40
"""Width of a lane of the picture."""


def test_the_picture_names_what_is_there() -> None:
    (picture,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    lanes = [
        [line[start : start + LANE].strip() for line in picture.splitlines()]
        for start in (0, LANE, 2 * LANE)
    ]
    for lane in lanes:
        stations = [i for i, words in enumerate(lane) if words.endswith(".py")]
        assert len(stations) >= 8
        assert sum("WALL" in words for words in lane) == (2 if lane is lanes[0] else 1)
        for i in stations:
            name = lane[i + 1].partition(":")[0]
            assert name in defined(file_of(lane[i])), (lane[i], name)


def test_the_page_names_what_is_there() -> None:
    for name, file in re.findall(r"^\| `(\w+)` \| `([\w/]+\.py)` \|", PAGE, re.MULTILINE):
        assert name in defined(file_of(file)), (name, file)
    for file in re.findall(r"[\w/]+\.py", PAGE):
        assert file_of(file).exists() or (ROOT / file).exists(), file


def test_every_citation_of_the_page_leads_somewhere() -> None:
    anchors = re.findall(r'^<a id="([\w-]+)"></a>$', PAGE, re.MULTILINE)
    assert len(set(anchors)) == len(anchors)
    cited = set()
    for folder in ("src", "tests", "proofs", "docs", "examples", "benchmarks"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md"):
                cited |= set(re.findall(r"docs/architecture\.md#([\w-]+)", path.read_text()))
    assert {"consequence-1", "consequence-2"} <= cited <= set(anchors)
