"""Everything that code, tests and pages cite is in the repository."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "proofs", "benchmarks", "examples", "docs")
KINDS = (".py", ".md", ".toml", ".html", ".js")

CONVERTED = (
    "tabular_ldp",
    "mixture_ldp",
    "mixture_jdp",
    "linear_jdp",
    "lq_jdp",
    "pucb",
    "private_ucb",
    "dp_ucbvi",
    "architecture",
)
"""Documents of which only a place on their page may be cited; at last this is ``DOCUMENTS``."""

DOCUMENTS = (*sorted(page.stem for page in (ROOT / "docs" / "papers").glob("*.md")), "architecture")

CITATION = re.compile(r"docs/((?:papers/\w+|architecture)\.md)#([\w-]+)")
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.MULTILINE)

BARE = (
    r"\b[Ee]rrat(?:um|a) E\d",
    r"\b[Ss]pecs? (?:section |erratum |errata )?[BE]?\d",
    r"\(B\d(?: [ivx]+)?\)|, B\d\)",
)
"""Numbers that do not say of which page."""

UNNAMED = r"\(E\d+\)|, E\d+\)"
"""The same, allowed in what ``tacit reproduce`` prints: a note below it names the page."""

PRINTED = ("src/tacit_lab/", "docs/results/figures.md")


def texts() -> Iterator[tuple[str, str]]:
    """Path and text of every file that may cite."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted([*files, ROOT / "README.md"]):
        name = path.relative_to(ROOT).as_posix()
        built = name.startswith(("docs/_build/", "docs/proofs/"))
        if path.suffix in KINDS and not built and path != Path(__file__).resolve():
            yield name, path.read_text()


def as_read(text: str) -> str:
    """Text without line ends, comment marks and the seams of string literals."""
    text = re.sub(r"\n\s*(?:[>#] ?)*", " ", text)
    return re.sub(r"\s+", " ", re.sub(r'"\s*[frb]*"', "", text))


def old_names(document: str) -> str:
    """How a document that is not shipped was cited."""
    if document == "architecture":
        return r"\bDESIGN\b"
    return rf"\b[Ss]pecs? {document}|\b{document},? (?:section |erratum |errata )?[BE]?\d"


def judged(text: str, converted: tuple[str, ...]) -> bool:
    """Whether a number without a name in this file can only mean a converted document."""
    waiting = set(DOCUMENTS) - set(converted)
    cites = {Path(page).stem for page, _ in CITATION.findall(text)}
    return not waiting or (
        bool(cites & set(converted)) and not any(document in text for document in waiting)
    )


def wrong(name: str, text: str, converted: tuple[str, ...] = CONVERTED) -> list[str]:
    """Citations of what nobody can look up."""
    patterns = [old_names(document) for document in converted]
    own = name.startswith("docs/papers/")  # a page may use its own numbers
    if judged(text, converted) and not own:
        patterns += [*BARE, *([] if name.startswith(PRINTED) else [UNNAMED])]
    found = (re.search(pattern, as_read(text)) for pattern in patterns)
    return [match[0] for match in found if match]


def test_every_citation_leads_to_a_place() -> None:
    cited = {(name, *place) for name, text in texts() for place in CITATION.findall(text)}
    assert len(cited) > 90
    pages = {page for _, page, _ in cited}
    assert {f"papers/{paper}.md" for paper in CONVERTED if paper != "architecture"} <= pages
    places = {
        page: set(ANCHOR.findall((ROOT / "docs" / page).read_text()))
        for page in pages
        if (ROOT / "docs" / page).exists()
    }
    lost = sorted(one for one in cited if one[2] not in places.get(one[1], set()))
    assert lost == []


def test_every_page_that_is_named_is_there() -> None:
    page = re.compile(r"(?<![\w./])((?:docs|proofs|benchmarks)/[\w/]+\.md)")
    named = {(name, one) for name, text in texts() for one in page.findall(text)}
    assert len(named) > 90
    assert sorted(one for one in named if not (ROOT / one[1]).exists()) == []


MODULES = [*(ROOT / "src").rglob("*.py")]
FILES = {path.name for folder in (*FOLDERS, "clients") for path in (ROOT / folder).rglob("*.py")}
PARTS = "|".join(path.name for path in (ROOT / "src" / "tacit").iterdir() if path.is_dir())


def leads_somewhere(dotted: str) -> bool:
    """Whether a name such as ``privacy.noise.Noise`` is of a module, or of something in one."""
    way = (ROOT / "src" / "tacit").joinpath(*dotted.split("."))
    if way.is_dir() or way.with_suffix(".py").exists():
        return True
    module = way.parent.with_suffix(".py")
    defined = re.compile(rf"^(?:def |class )?{way.name}\b", re.MULTILINE)
    return module.exists() and bool(defined.search(module.read_text()))


def test_modules_that_code_names_are_there() -> None:
    """In prose, between back quotes: ``file.py``, or a dotted name that begins as a folder does."""
    lost = []
    for path in MODULES:
        text = path.read_text()
        dotted = re.findall(rf"``(?:tacit\.)?((?:{PARTS})\.[\w.]+?)(?:\(.*?\))?``", text)
        lost += [one for one in dotted if not one.endswith(".py") and not leads_somewhere(one)]
        lost += [one for one in re.findall(r"``(?:\w+/)*(\w+\.py)``", text) if one not in FILES]
    assert lost == []
    assert leads_somewhere("privacy.noise") and leads_somewhere("privacy.noise.Noise")
    assert not leads_somewhere("privacy.nose") and not leads_somewhere("privacy.noise.Nose")


def test_places_have_one_name_each() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        names = ANCHOR.findall(page.read_text())
        assert len(names) == len(set(names)), page.name


def test_nothing_is_cited_that_is_not_shipped() -> None:
    found = {name: words for name, text in texts() if (words := wrong(name, text))}
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "Spec tabular_ldp 3.2. Pools stages",
        "(spec tabular_ldp 3.3)",
        "rounded at random (spec\ntabular_ldp B1)",
        "# numbers of spec\n    # tabular_ldp section 4",
        'PublishedNoise("tabular_ldp 3.3", 1)',
        "as in tabular_ldp, erratum E8",
        "docs/papers/tabular_ldp.md#e7, and more (erratum E8)",
        "docs/papers/tabular_ldp.md#e7, then errata E1 to E3",
        "docs/papers/tabular_ldp.md#b1, nothing more (B2)",
        "docs/papers/tabular_ldp.md#b1 (this, B5)",
        "docs/papers/tabular_ldp.md#b8, secret (B8 iii)",
        "docs/papers/tabular_ldp.md#precisions, bounds (spec 3.4)",
        "docs/papers/tabular_ldp.md#e12, one user moves them (E12)",
    ],
)
def test_bad_citations_are_found(text: str) -> None:
    assert wrong("src/tacit/some.py", text)


@pytest.mark.parametrize(
    "text",
    [
        "docs/papers/tabular_ldp.md#e4, and E5, E8 there",
        "from tacit_lab.papers.tabular_ldp import learners",
        "read a spec from a file",
        "Algorithm 5 of the paper, (113)",
        "by design",
    ],
)
def test_good_citations_are_left_alone(text: str) -> None:
    assert wrong("src/tacit/some.py", text) == []
    assert wrong("src/tacit/some.py", text, DOCUMENTS) == []


def test_documents_that_wait_are_left_alone_until_they_are_converted() -> None:
    bare, design = "never made (erratum E5)", "the wall (DESIGN: consequence 2)"
    assert wrong("a.py", bare, ()) == wrong("a.py", design, ()) == []
    assert wrong("a.py", bare, DOCUMENTS) and wrong("a.py", design, DOCUMENTS)
    both = "docs/papers/tabular_ldp.md#e7 and spec lq_jdp, errata E2"
    assert wrong("a.py", both, ("tabular_ldp",)) == []
    assert wrong("a.py", both, ("tabular_ldp", "lq_jdp"))
    assert wrong("docs/results/figures.md", "exactly (E7)", DOCUMENTS) == []
