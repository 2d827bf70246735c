"""Tables "Row by row" of the papers' pages: their code exists, and nothing numbered is left out."""

import importlib
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tacit_lab.figures.reproduction import figures

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "papers"
HEADING = "## Row by row\n"
HEAD = ["in the paper", "in the code", "how far", "shown by"]


def numbered(**kinds: str) -> dict[str, set[str]]:
    """By kind of statement, its numbers: "1 2 A.1"."""
    return {kind: set(numbers.split()) for kind, numbers in kinds.items()}


REQUIRED = {
    "tabular_ldp": numbered(
        Theorem="2 5 7",
        Lemma="6",
        Proposition="4 8 9 10 11 12 13 14 15",
        Algorithm="1 2 3 4 5 6 7 8 9 10",
        Figure="1 2 3 4 5 6 7 8 9",
        Table="1",
        Definition="1",
        Assumption="3",
    ),
    "mixture_ldp": numbered(
        Definition="3.1 3.5 3.6 A.1",
        Remark="3.2 3.7 5.3 5.7",
        Example="3.3 3.4",
        Lemma="3.8 5.4 5.5 B.1 B.2 C.1 E.1 E.2",
        Theorem="5.1 5.2 5.6 A.2",
        Algorithm="1",
        Figure="1 2",
    ),
    "mixture_jdp": numbered(
        Assumption="1 2",
        Definition="2.1 2.2 2.3 6.2 6.3 7.1",
        Lemma="3.1 6.1 7.2 B.1 B.2 B.3 B.4 B.5",
        Theorem="4.1 5.1 6.4 6.5",
        Remark="4.2 5.2 6.6 6.7 6.8 6.9",
        Algorithm="1 2",
    ),
    "linear_jdp": numbered(
        Definition="2.1 2.2 2.3 2.4",
        Lemma="2.1 2.2 2.3 2.4 A.1 B.1 B.2 B.3 B.4 B.5 B.6 C.1 C.2 C.3 C.4 C.5 D.1 D.2 "
        "E.1 E.2 E.3 F.1 F.2 F.3 F.4 G.1 G.2 G.3 G.4 G.5 G.6 G.7 G.8 G.9",
        Theorem="3.1 3.2 A.1",
        Algorithm="1",
        Figure="1",
    ),
    "lq_jdp": numbered(
        Theorem="1 2 3",
        Lemma="1 2 3 4 5 6 7 8 9 10 11 12 13",
        Claim="1 2",
        Algorithm="1",
        Definition="1 2 3",
        Assumption="1 2",
    ),
    "pucb": {},
    "private_ucb": {},
    "dp_ucbvi": {},
}
"""Pages that must have the table, and which statements must be in it; each paper adds its own."""

PLURALS = {"Corollary": "Corollaries"}
NUMBER = r"(?:[A-Z]\.)?\d+(?:\.\d+)?"
REFERENCE = re.compile(r"`(tacit(?:_lab)?(?:\.\w+)+)`")


def rows(page: str) -> list[list[str]]:
    """Cells of the table, head and rule left out; none without the heading."""
    text = (PAGES / f"{page}.md").read_text()
    if HEADING not in text:
        return []
    section = text.split(HEADING)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert cells[0] == HEAD, f"{page}: the table's head is {cells[0]}"
    return cells[2:]


TABLES = sorted(page.stem for page in PAGES.glob("*.md") if HEADING in page.read_text())


def named(text: str, kind: str) -> set[str]:
    """The numbers of one kind that a first cell names: "Lemmas 4, 6 to 8" has 4, 6, 7 and 8."""
    found: set[str] = set()
    words = f"(?:{kind}s?|{PLURALS.get(kind, kind)})"
    for listed in re.findall(rf"{words} ({NUMBER}(?:(?:, | and | to ){NUMBER})*)", text):
        for one in re.split(", | and ", listed):
            first, _, last = one.partition(" to ")
            prefix, start = re.fullmatch(r"(.*?)(\d+)", first).groups()
            stop = int(last.removeprefix(prefix)) if last else int(start)
            found |= {f"{prefix}{number}" for number in range(int(start), stop + 1)}
    return found


def resolved(reference: str) -> object:
    """The object of that dotted name: a module, or what is in one."""
    parts, names = reference.split("."), []
    while parts:
        try:
            found: object = importlib.import_module(".".join(parts))
            break
        except ModuleNotFoundError:
            names.insert(0, parts.pop())
    for name in names:
        fields = getattr(found, "__dataclass_fields__", {})
        found = fields[name] if name in fields else getattr(found, name)
    return found


def wrong(cells: list[str]) -> list[str]:
    """What of a row is not so."""
    if len(cells) != len(HEAD) or not all(cells[:3]):
        return [f"not {len(HEAD)} cells"]
    problems = []
    references = REFERENCE.findall(cells[1])
    if not references:
        problems.append("no code is named by its full name")
    for reference in references:
        try:
            resolved(reference)
        except (AttributeError, ImportError):
            problems.append(f"there is no {reference}")
    for test in re.findall(r"`(tests/[\w/.]+)`", cells[3]):
        if not (ROOT / test).is_file():
            problems.append(f"there is no {test}")
    for figure in re.findall(r"`tacit reproduce ([\w/-]+)", cells[3]):
        if figure not in {each.id for each in figures}:
            problems.append(f"there is no figure {figure}")
    return problems


@pytest.mark.parametrize("page", sorted({*REQUIRED, *TABLES}))
def test_every_row_names_code_and_commands_that_exist(page: str) -> None:
    assert rows(page), f"{page} has no table of rows"
    problems = {cells[0]: bad for cells in rows(page) if (bad := wrong(cells))}
    assert problems == {}


@pytest.mark.parametrize("page", REQUIRED)
def test_nothing_numbered_is_left_out(page: str) -> None:
    found = defaultdict(set)
    for first, *_ in rows(page):
        for kind in REQUIRED[page]:
            found[kind] |= named(first, kind)
    missing = {kind: numbers - found[kind] for kind, numbers in REQUIRED[page].items()}
    assert {kind: left for kind, left in missing.items() if left} == {}


def test_what_is_wrong_is_found() -> None:
    """Lists of numbers are read, and rows about nothing are noticed."""
    assert named("Lemmas 4, 6 to 8 and B.2, Theorem 3", "Lemma") == {"4", "6", "7", "8", "B.2"}
    assert named("Definitions 2.1 to 2.3, private", "Definition") == {"2.1", "2.2", "2.3"}
    assert named("Algorithm 4 and Propositions 10, 11", "Proposition") == {"10", "11"}
    good = ["Theorem 1", "`tacit.bound`", "exact", "`tacit reproduce lq-jdp/optimism`"]
    assert wrong(good) == []
    for cell, text in (
        (1, "`tacit.bound_of_nothing`"),
        (1, "`LinearSystem`"),
        (3, "`tests/test_nothing.py`"),
        (3, "`tacit reproduce lq-jdp/pessimism`"),
        (2, ""),
    ):
        assert wrong([*good[:cell], text, *good[cell + 1 :]]) != []
