"""Where something is missing: modules of Unix, extras, a home that can be written to."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from patience import PATIENCE

UNIX = ("fcntl", "resource", "pwd", "grp", "termios")
EXTRAS = ("pandas", "pyarrow", "matplotlib", "jinja2", "opendp", "httpx", "ray", "fastapi")


def without(modules: tuple[str, ...], code: str, folder: Path, **environment: str) -> str:
    """What a fresh process prints that cannot import these modules."""
    blocked = f"import sys\nfor name in {modules!r}: sys.modules[name] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", blocked + code],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, **environment},
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


LEDGER = """
from tacit.privacy.charges import GaussianCharge
from tacit.privacy.filter import Budget
from tacit.privacy.ledger import Ledger, LedgerUnavailable, verify
ledger = Ledger.create("book", budget=Budget(1.0, 1e-5, pure=0.5, mu_squared=0.02), task="t")
ledger.spend(GaussianCharge(0.01), "a")
try:
    Ledger.open("book")
except LedgerUnavailable as error:
    print(error)
ledger.close()
with Ledger.open("book") as again:
    again.spend(GaussianCharge(0.01), "b")
print(verify("book").summary["records"])
"""

WITNESS = """
from pathlib import Path
from tacit_service.storage.witness import Mark, Witness
witness = Witness(Path("w.json"), "task")
witness.create()
witness.note(Mark(1, "d"), b"n")
print(witness.read().mark.releases)
"""


def test_the_ledger_is_locked_and_kept_without_unix(tmp_path: Path) -> None:
    said = without(UNIX, LEDGER, tmp_path).splitlines()
    assert said[0] == "book is open already, here or elsewhere" and int(said[1]) >= 3


def test_the_witness_is_kept_without_unix(tmp_path: Path) -> None:
    assert without(UNIX, WITNESS, tmp_path) == "1"


def test_every_module_can_be_imported_without_unix(tmp_path: Path) -> None:
    code = (
        "import importlib, pkgutil, tacit\n"
        "for found in pkgutil.walk_packages(tacit.__path__, 'tacit.'):\n"
        "    if '__main__' not in found.name and 'migrations' not in found.name:\n"
        "        importlib.import_module(found.name)\n"
        "print('all')"
    )
    assert without(("fcntl", "resource"), code, tmp_path) == "all"


def test_runs_guarantees_and_audits_need_no_extra(tmp_path: Path) -> None:
    code = (
        "import tacit\n"
        "r = tacit.simulate('random-mdp', 'psrl', 50); r.to_json(); r._repr_html_()\n"
        "g = tacit.guarantee('random-mdp', tacit.agent('tacit-joint', epsilon=1.0), 50)\n"
        "a = tacit.audit('random-mdp', tacit.agent('ldp-obi', epsilon=2.0), trials=1000)\n"
        "print(g.model, [report.source for report in a.reports], a.remarks[0])"
    )
    said = without(EXTRAS, code, tmp_path)
    assert said.startswith("joint ['simulated', 'simulated'] ") and "tacit[secure]" in said


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("import tacit; tacit.simulate('random-mdp', 'psrl', 5).frame()", "tables"),
        ("import tacit; tacit.simulate('random-mdp', 'psrl', 5).plot('x.png')", "plots"),
        ("import tacit; tacit.simulate('random-mdp', 'psrl', 5).save('x')", "plots,tables"),
        ("import tacit.client", "client"),
        ("import tacit_service.storage.database", "service"),
        ("import tacit_lab.sweep.spec", "tables"),
        ("import tacit_lab.report.page", "report"),
    ],
)
def test_a_missing_extra_is_a_sentence_with_the_pip_line(code, extra, tmp_path: Path) -> None:
    caught = f"try:\n    {code.replace('; ', chr(10) + '    ')}\nexcept ImportError as e: print(e)"
    said = without(EXTRAS, caught, tmp_path)
    assert "is not installed" in said and said.endswith(f"pip install 'tacit[{extra}]'")


@pytest.mark.parametrize(
    "words", ["demo", "sweep x.toml", "report x", "serve x.toml", "admin check x.toml"]
)
def test_commands_say_it_too(words: str, tmp_path: Path) -> None:
    code = (
        "from tacit.cli.main import main\n"
        f"sys.argv = ['tacit', *{words.split()!r}]; sys.stderr = sys.stdout\n"
        "try: main()\nexcept SystemExit as end: print(end.code)"
    )
    said = without(EXTRAS, code, tmp_path).splitlines()
    assert len(said) == 2 and said[1] == "2" and "pip install 'tacit[" in said[0]


def test_compiled_code_is_found_again_where_home_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").touch()  # a file: no folder can be made in it, whoever asks
    code = (
        "import numpy; from tacit.kernels.compiler import compilation\n"
        "from tacit.kernels.sampling import draw\n"
        "draw(numpy.ones(1), 0.5); print(compilation.seconds > 0)"
    )
    (tmp_path / "tmp").mkdir()
    home = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home")}
    home |= {"TMPDIR": str(tmp_path / "tmp"), "TACIT_CACHE_DIR": ""}
    assert [without((), code, tmp_path, **home) for _ in range(2)] == ["True", "False"]
