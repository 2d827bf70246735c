"""The architecture as a test: imports follow the arrow, and the wall has one door."""

import ast
from pathlib import Path

import pytest

import tacit
from tacit.kernels.compiler import ABOVE

PACKAGE = Path(tacit.__file__).parent
MODULES = {
    "tacit." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in PACKAGE.rglob("*.py")
}
MODULES = {name.removesuffix(".__init__"): path for name, path in MODULES.items()}
PLANNING_KERNELS = (
    *("planning", "optimism", "posterior", "noisy_posterior", "directional"),
    *("questions", "asking"),
    *("obi", "obi_tight", "obi_values", "lsvi"),
    *("excitation", "lq", "lq_learning", "lq_optimism"),
    *("cholesky", "mixture", "transitions", "vfree", "joint_counts", "widths"),
)


def imports(path: Path, everywhere: bool = True) -> set[str]:
    """Every tacit module a file imports, wherever in the file, or only when it is loaded."""
    found = set()
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: use absolute imports"
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name in MODULES and name != "tacit"}


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
    return any(name == f"tacit.{p}" or name.startswith(f"tacit.{p}.") for p in packages)


BLIND = sorted(
    name
    for name in MODULES
    if under(
        name, "planners", "policy", "publication", "release", "task", "features", "multi_target"
    )
    or under(name, *(f"kernels.{kernel}" for kernel in PLANNING_KERNELS))
)
RAW = (
    "trajectory",
    "statistics",
    "privacy",
    "problems",
    "simulation",
    "driver",
    "agents",
    "kernels.rollout",
    "kernels.counts",
    "kernels.linear_sums",
    "kernels.sums",
    "kernels.lq_moments",
    "kernels.lq_rollout",
    "kernels.targets",
    "kernels.multi_target",
)


@pytest.mark.parametrize("module", BLIND)
def test_planning_cannot_reach_raw_data_by_imports(module: str) -> None:
    assert {name for name in closure(module) if under(name, *RAW)} == set()


def test_the_import_walk_sees_what_it_must() -> None:
    assert len(BLIND) >= 10
    assert "tacit.trajectory" in closure("tacit.statistics.counts")
    assert "tacit.kernels.rollout" in closure("tacit.simulation.loops")


ARROW = {
    # package: what it may import, besides itself and arrays, errors, validate, kernels
    "kernels": (),
    "features": ("task",),
    "multi_target": ("features", "task"),
    "statistics": ("features", "multi_target", "publication", "policy", "task", "trajectory"),
    "privacy": (
        *("features", "publication", "policy", "release", "statistics", "task", "trajectory"),
    ),
    "planners": ("features", "multi_target", "publication", "policy", "release", "task"),
    "problems": ("policy", "registry", "task", "trajectory"),
    "agents": (
        *("driver", "features", "planners", "policy", "privacy", "publication", "registry"),
        *("release", "statistics", "task", "trajectory"),
    ),
}
COMMON = ("arrays", "errors", "validate", "kernels")


@pytest.mark.parametrize("package", ARROW)
def test_imports_follow_the_arrow(package: str) -> None:
    allowed = (package, *COMMON, *ARROW[package])
    for name, path in MODULES.items():
        if under(name, package):
            assert {i for i in imports(path) if not under(i, *allowed)} == set(), name


def test_nothing_imports_the_command_line() -> None:
    for name, path in MODULES.items():
        if not under(name, "cli"):
            assert not any(under(i, "cli") for i in imports(path)), name


def test_only_the_command_line_imports_the_experiments() -> None:
    for name, path in MODULES.items():
        if not under(name, "cli", "experiments"):
            assert not any(under(i, "experiments") for i in imports(path)), name


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
        if under(name, "simulation", "report"):
            assert not {"abs", "np.abs", "np.absolute"} & set(calls(path)), name


def test_modules_stay_small() -> None:
    for name, path in MODULES.items():
        assert path.read_text().count("\n") <= 500, name


def test_nobody_inside_goes_through_the_lazy_root() -> None:
    """``from tacit import problem`` would lead a planner to everything, unseen by the walk."""
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert "tacit" not in {alias.name for alias in node.names}, name
            if isinstance(node, ast.ImportFrom) and node.module == "tacit":
                assert {f"tacit.{alias.name}" for alias in node.names} <= set(MODULES), name


def test_the_kernel_cache_notices_every_module_a_kernel_can_reach() -> None:
    with_kernels = [name for name, path in MODULES.items() if "\n@kernel\n" in path.read_text()]
    reached = set().union(*(closure(name, everywhere=False) for name in with_kernels))
    assert len(with_kernels) >= 40
    assert {name for name in reached if under(name, *ABOVE)} == set()
