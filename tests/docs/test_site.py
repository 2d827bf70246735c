"""The documentation site builds without a warning and needs nobody else to be read."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Built as ``make docs`` builds it, elsewhere."""
    out = tmp_path_factory.mktemp("site")
    words = ["-W", "--keep-going", "--quiet", "-b", "html", str(DOCS), str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words], capture_output=True, text=True, cwd=out
    )
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_there(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        if "_build" not in page.parts:
            built = site / page.relative_to(DOCS).with_suffix(".html")
            assert built.exists(), page
    for proof in (ROOT / "proofs").glob("*.md"):
        assert (site / "proofs" / proof.name).with_suffix(".html").exists(), proof
    text = (site / "reference" / "python.html").read_text()
    assert "tacit.simulate" in text.replace("</span>", "").replace('<span class="pre">', "")


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    """Links may lead away; scripts, styles, fonts and pictures may not come from there."""
    loads = re.compile(r"<(?:script|img|iframe|source)[^>]+src=\"([^\"]+)\"|<link[^>]+>")
    for page in site.rglob("*.html"):
        for found in loads.finditer(page.read_text()):
            assert "//" not in found[0].replace("data:", ""), (page.name, found[0])
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text())


def test_formulas_are_drawn_and_places_can_be_linked_to(site: Path) -> None:
    page = (site / "papers" / "tabular_ldp.html").read_text()
    assert page.count("<math") > 300 and "<msqrt>" in page and "$" not in page.replace("$(", "")
    assert '<a id="e8">' in page and 'href="#e8"' in page
    guide = (site / "guides" / "reproduce.html").read_text()
    assert 'href="../papers/tabular_ldp.html#e9"' in guide


def test_every_paper_has_its_page() -> None:
    papers = sorted((DOCS / "papers").glob("*.md"))
    assert len(papers) == 8
    for paper in papers:
        headings = re.findall(r"^## (.*)$", paper.read_text(), re.MULTILINE)
        owed = ["What it says", "What we found wrong", "What we measured"]
        assert [heading for heading in headings if heading in owed] == owed, paper.name


def test_papers_name_agents_and_figures_that_exist() -> None:
    from tacit.agents import agents
    from tacit_lab.figures.reproduction import figures

    known = {entry.name for entry in agents}
    ids = {figure.id for figure in figures}
    for paper in (DOCS / "papers").glob("*.md"):
        text = paper.read_text()
        named = re.findall(
            r"`((?:ldp|dp|private|tacit|shuffle|linopt|lsvi|ofu|ucrl)-[\w+-]+)`", text
        )
        assert named and set(named) <= known, paper.name
        shown = re.findall(r"(?:tabular|mixture|linear|lq)-[lj]dp/[\w-]+|lq-jdp/\w+", text)
        assert shown and set(shown) <= ids, paper.name
