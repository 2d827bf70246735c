import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "proofs").glob("*.md"))


def test_every_page_is_in_the_index_and_names_existing_code() -> None:
    index = (ROOT / "proofs" / "README.md").read_text()
    assert len(PAGES) >= 7
    for page in PAGES:
        assert page.name == "README.md" or f"({page.name})" in index
    for path in re.findall(r"`(src/tacit/[\w/.]+)`", index):
        assert (ROOT / path).exists(), path


def test_every_page_says_what_is_checked_what_is_owed_and_why() -> None:
    for page in PAGES:
        if page.name not in ("README.md", "audit.md"):
            text = page.read_text().lower()
            for part in ("checked by", "owed by", "pseudocode"):
                assert part in text, (page.name, part)
            assert "argument" in text or "claim" in text, page.name


def prose(text: str) -> str:
    """What is left without code, formulas and links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\$\$.*?\$\$|\$[^$]+\$|`[^`]+`", "", text, flags=re.DOTALL)
    return re.sub(r"\[[^]]*\]\([^)]*\)", "", text)


def test_formulas_are_formulas_and_what_is_cited_is_in_the_repository() -> None:
    ascii_formula = re.compile(r"<=|>=|\^|\bsqrt\b|\w_\w|\b1e-|\*\*2|\b(?:eps|sigma|mu|phi)\b")
    elsewhere = re.compile(r"\bspecs?\b|\b[EB]\d+\b|DESIG[N]")
    for page in PAGES:
        text = page.read_text()
        left = prose(text)
        assert "$" not in left, page.name
        assert (ascii_formula.findall(left), elsewhere.findall(left)) == ([], []), page.name
        for paper in re.findall(r"docs/papers/(\w+\.md)", text):
            assert (ROOT / "docs" / "papers" / paper).exists(), (page.name, paper)
        for link in re.findall(r"\]\(([\w.]+)\)", text):
            assert (page.parent / link).exists(), (page.name, link)
        for file in re.findall(r"`(tests/[\w/]+\.py)`", text):
            assert (ROOT / file).exists(), (page.name, file)
