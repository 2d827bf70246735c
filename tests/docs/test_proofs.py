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
