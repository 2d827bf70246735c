"""Where compiled code is kept, when it is thrown away, and life without a compiler."""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from patience import PATIENCE
from tacit.kernels import compiler
from tacit.kernels.compiler import source_hash


def run(code, **environment):
    """Standard output of a fresh process; anything on standard error fails."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, **environment},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


# ---- the hash that names the folder -------------------------------------------------------------


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "one.py").write_text("x = 1\n")
    (tmp_path / "inner" / "two.py").write_text("y = 2\n")
    (tmp_path / "notes.txt").write_text("not code\n")
    return tmp_path


CHANGES = {
    "an edit": lambda tree: (tree / "one.py").write_text("x = 2\n"),
    "an edit of the same length, deeper": lambda tree: (tree / "inner/two.py").write_text(
        "y = 3\n"
    ),
    "a new file": lambda tree: (tree / "inner/three.py").write_text("z = 3\n"),
    "a new empty file": lambda tree: (tree / "inner/__init__.py").touch(),
    "a removed file": lambda tree: (tree / "one.py").unlink(),
    "a renamed file": lambda tree: (tree / "one.py").rename(tree / "uno.py"),
    "a moved file": lambda tree: (tree / "one.py").rename(tree / "inner/one.py"),
    "exchanged contents": lambda tree: (
        (tree / "one.py").write_text("y = 2\n"),
        (tree / "inner/two.py").write_text("x = 1\n"),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_hash_notices(tree, change):
    before = source_hash(tree)
    change(tree)
    assert source_hash(tree) != before


def test_the_hash_depends_on_code_alone(tree, tmp_path_factory):
    before = source_hash(tree)
    (tree / "notes.txt").write_text("still not code\n")
    os.utime(tree / "one.py", (0, 0))
    assert source_hash(tree) == before
    copy = tmp_path_factory.mktemp("elsewhere")
    (copy / "inner").mkdir()
    (copy / "inner" / "two.py").write_text("y = 2\n")
    (copy / "one.py").write_text("x = 1\n")
    assert source_hash(copy) == before


def test_the_hash_leaves_out_folders_above_all_kernels(tree):
    before = source_hash(tree)
    (tree / "cli").mkdir()
    (tree / "cli" / "main.py").write_text("z = 3\n")
    assert source_hash(tree) == before


def test_the_hash_of_some_parts_is_over_these_alone(tree):
    before = source_hash(tree, frozenset({"one"}))
    (tree / "inner" / "two.py").write_text("y = 3\n")
    assert source_hash(tree, frozenset({"one"})) == before != source_hash(tree)
    (tree / "one.py").write_text("x = 2\n")
    assert source_hash(tree, frozenset({"one"})) != before


def test_the_hash_is_over_the_package():
    assert (compiler.PACKAGE / "kernels" / "compiler.py").is_file()
    assert source_hash() == source_hash(compiler.PACKAGE)


# ---- the folder ---------------------------------------------------------------------------------


@pytest.fixture
def fresh_folder():
    """cache_folder without its memory, before and after the test."""
    compiler.cache_folder.cache_clear()
    yield compiler.cache_folder
    compiler.cache_folder.cache_clear()


def test_folders_by_environment(fresh_folder, tmp_path, monkeypatch):
    name = f"kernels-{source_hash()}"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.delenv("TACIT_CACHE_DIR", raising=False)
    assert fresh_folder() == tmp_path / "user" / "tacit" / name
    monkeypatch.setenv("TACIT_CACHE_DIR", str(tmp_path / "chosen"))
    assert fresh_folder() == tmp_path / "user" / "tacit" / name  # one folder per process
    fresh_folder.cache_clear()
    assert fresh_folder() == tmp_path / "chosen" / name
    assert fresh_folder().is_dir()


def test_a_folder_that_cannot_be_made_is_replaced_by_a_private_one(
    fresh_folder, tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TACIT_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    folder = fresh_folder()
    assert folder.is_dir() and folder.is_relative_to(tmp_path / "temporary")
    private = folder.parent
    assert private.stat().st_mode & 0o077 == 0  # nobody else may plant code in it
    fresh_folder.cache_clear()
    assert fresh_folder() == folder  # what was compiled is found again
    private.chmod(0o777)
    fresh_folder.cache_clear()
    other = fresh_folder()  # somebody may have planted code by now
    assert not other.is_relative_to(private) and other.parent.stat().st_mode & 0o077 == 0
    private.rename(tmp_path / "elsewhere")
    private.symlink_to(tmp_path / "elsewhere")
    fresh_folder.cache_clear()
    assert not fresh_folder().resolve().is_relative_to(tmp_path / "elsewhere")


def test_compiling_is_announced_once_and_takes_no_working_time(monkeypatch, capsys):
    from types import SimpleNamespace

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    heard = compiler.Compilation()
    monkeypatch.setattr(compiler, "compilation", heard)
    now = iter([0.0, 1.0, 3.0, 20.0, 100.0, 200.0])
    monkeypatch.setattr(compiler.time, "perf_counter", lambda: next(now))
    begin, end = (SimpleNamespace(is_start=start, is_end=not start) for start in (True, False))
    assert compiler.working_time() == 0.0
    for event in (begin, begin, end, end):  # one within another, from 1 to 20
        heard.notify(event)
    assert heard.seconds == 19.0 and compiler.working_time() == 100.0 - 19.0
    heard.notify(begin)
    assert capsys.readouterr().err == "tacit: compiling once, about 20 s\n"


def test_numba_tells_when_it_compiles(tmp_path):
    code = (
        "import numpy as np; from tacit.kernels import compiler, kernel\n"
        "@kernel\n"
        "def f(x): return x + 1\n"
        "f(1); print(compiler.compilation.seconds > 0.0)"
    )
    script = tmp_path / "script.py"  # what has no file cannot be cached
    script.write_text(code)
    done = [
        subprocess.run(
            [sys.executable, str(script)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "TACIT_CACHE_DIR": str(tmp_path / "cache")},
        ).stdout.strip()
        for _ in range(2)
    ]
    assert done == ["True", "False"]  # the second one found the first one's code


def test_folders_unused_for_a_month_are_removed(fresh_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE_DIR", str(tmp_path))
    day = 24 * 3600
    for name, age in (("kernels-old", 31), ("kernels-young", 29), ("mine", 99)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "content").touch()
        os.utime(tmp_path / name, (time.time() - age * day,) * 2)
    current = fresh_folder().name
    assert {path.name for path in tmp_path.iterdir()} == {"kernels-young", "mine", current}


# ---- fresh processes ----------------------------------------------------------------------------

USE = """
import numba
before = numba.config.CACHE_DIR
import tacit
from tacit.kernels.sampling import draw
import numpy as np
assert draw(np.array([0.25, 1.0]), 0.5) == 1
hits, misses = draw.stats.cache_hits, draw.stats.cache_misses
print(sum(hits.values()), sum(misses.values()), numba.config.CACHE_DIR == before)
"""


def test_the_second_process_finds_the_code_of_the_first(tmp_path):
    """TACIT_CACHE_DIR holds the only files written, and Numba's own setting is left alone."""
    assert run(USE, TACIT_CACHE_DIR=str(tmp_path)) == ["0", "1", "True"]
    (folder,) = tmp_path.iterdir()
    assert folder.name == f"kernels-{source_hash(only=compiler.BELOW)}"
    assert list(folder.rglob("*draw*.nbi")) and list(folder.rglob("*draw*.nbc"))
    assert run(USE, TACIT_CACHE_DIR=str(tmp_path)) == ["1", "0", "True"]


def test_processes_that_need_a_kernel_at_once_compile_it_once(tmp_path):
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(run, USE, TACIT_CACHE_DIR=str(tmp_path)) for _ in range(3)]
    counts = sorted(each.result() for each in runs)
    assert counts == [["0", "1", "True"], ["1", "0", "True"], ["1", "0", "True"]]


def test_a_users_own_numba_folder_stays_theirs(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    theirs.mkdir()
    run(USE, TACIT_CACHE_DIR=str(ours), NUMBA_CACHE_DIR=str(theirs))
    assert list(ours.rglob("*.nbi")) and not list(theirs.iterdir())


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import types
import numpy as np
from tacit.kernels.public import planning, posterior
from tacit.kernels.raw import counts, rollout, sums
for module in (planning, rollout, counts, posterior, sums):
    for name, value in vars(module).items():
        assert not hasattr(value, "py_func"), name
assert type(planning.backward_induction) is types.FunctionType
from tacit.task.pairs import full_rows
P = np.eye(2)[[[0, 1], [1, 1]]]
R = np.array([[0.0, 0.0, 1.0, 1.0]])
Q, V, none = np.full((3, 4), np.inf), np.empty((4, 2)), np.zeros((0, 0))
first, rows = np.array([0, 2, 4]), full_rows(1, 4, 2)
planning.backward_induction(first, rows, P.ravel(), none, R, 0.0, Q, V)
print(*V[0])
from tacit import TabularMDP
print(TabularMDP(P, R.reshape(2, 2), horizon=3).optimal_value())
"""


def test_without_numba_the_kernels_are_the_plain_functions():
    assert run(WITHOUT_NUMBA) == ["2.0", "3.0", "2.0"]
