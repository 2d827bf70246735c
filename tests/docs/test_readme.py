"""Every command and number in the README is executed here."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tacit.agents.catalogue import from_people
from tacit.cli.list import entries

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
CATALOGUE = (ROOT / "docs" / "reference" / "catalogue.md").read_text()
MOST_CHARACTERS = 8_000
SECTIONS = [
    "Install",
    "Ten lines",
    "Command line",
    "Serve it",
    "What is protected, and what is not",
    "Where to go",
]


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    found = []
    for block in (*blocks("console"), *blocks("console", CATALOGUE)):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


COMMANDS = commands()


def test_it_is_read_in_a_few_minutes() -> None:
    assert len(README) <= MOST_CHARACTERS


def test_the_sections_come_in_order() -> None:
    assert re.findall(r"^## (.*)$", README, re.MULTILINE) == SECTIONS


def test_every_link_leads_somewhere() -> None:
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", README) if "://" not in link]
    assert len(links) >= 10
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_python_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    (code,), (expected,) = blocks("python"), blocks("text")
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == expected
    assert (tmp_path / "regret.png").exists()


@pytest.mark.parametrize(("command", "expected"), [c for c in COMMANDS if c[0].startswith("tacit")])
def test_commands_print_what_the_readme_says(command: str, expected: str, tmp_path: Path) -> None:
    words = shlex.split(command)
    words[0] = str(Path(sys.executable).with_name("tacit"))
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    shown = [line for line in expected.splitlines() if line.strip() != "..."]
    assert shown and done.stdout.splitlines()[: len(shown)] == shown


def test_make_demo_works(tmp_path: Path) -> None:
    assert ("make demo", "") in COMMANDS
    done = subprocess.run(
        ["make", "demo", f"DEMO_OUT={tmp_path}"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    for words in ("psrl, not", "tacit-local", "NO PRIVACY", "The curves:"):
        assert words in done.stdout
    assert (tmp_path / "regret.png").exists()


def test_make_test_is_the_gate_and_runs_everything() -> None:
    assert ("make test", "") in COMMANDS
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    plan = subprocess.run(
        ["make", "-n", "test"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for tool in ("ruff check", "ruff format --check", "mypy", "pytest"):
        assert tool in plan.stdout


def test_every_command_in_the_readme_is_one_of_the_tested_kinds() -> None:
    assert all(c.startswith(("tacit ", "make ", "pip install ")) for c, _ in COMMANDS)


def rows(section: str) -> list[list[str]]:
    text = CATALOGUE.split(f"## {section}\n")[1].split("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize(
    ("sections", "what"), [(("Agents", "Agents for logs"), "agents"), (("Problems",), "problems")]
)
def test_tables_list_what_there_is(sections: tuple[str, ...], what: str) -> None:
    shown = [(row[0].strip("`"), row[1]) for section in sections for row in rows(section)]
    assert shown == [(entry.name, entry.summary) for entry in entries(what)]


NOBODY = "collects nothing"


def test_the_guarantee_column_is_true() -> None:
    import tacit
    from tacit.problems.classic_control import cart_pole

    control = ("ofu-rl", "private-ofu-rl", "tacit-control", "certainty-equivalence", "thompson")
    fits = dict.fromkeys((*control, "do-nothing"), "lq-scalar")
    fits["ldp-bandit"] = "linear-bandit"
    for entry, row in zip(from_people(), rows("Agents"), strict=True):
        searched = entry.name.endswith("-search")
        problem = cart_pole() if searched else tacit.problem(fits.get(entry.name, "random-mdp"))
        asked = {"epsilon": 1.0} if "epsilon" in entry.parameters else {}
        guarantee = tacit.guarantee(problem, entry.factory(**asked), episodes=10)
        model, _, most = row[2].partition(": epsilon ")
        if guarantee.model == "none" or not entry.factory.models:
            assert (model, most) == (("none", "") if entry.factory.models else (NOBODY, "0"))
            continue
        assert model == guarantee.model, entry.name
        assert 0.0 < guarantee.epsilon <= float(most) * (1 + 1e-9)


def test_gymnasium_lines_work() -> None:
    code = 'import gymnasium; gymnasium.make("tacit.gym:tacit/river-swim-v0").reset(seed=0)'
    assert 'gymnasium.make("tacit.gym:tacit/river-swim-v0")' in CATALOGUE
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
