"""The page about sweeps and reports does what it says."""

from pathlib import Path

from docs.test_tutorials import test_the_page_does_what_it_says as executed

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_is_executed(tmp_path: Path, monkeypatch) -> None:
    executed(ROOT / "docs" / "guides" / "sweeps_and_reports.md", tmp_path, monkeypatch)
