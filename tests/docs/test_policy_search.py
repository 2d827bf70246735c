"""The file on the page about policy search works with every command that the page names."""

import re
from dataclasses import asdict
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacit.cli.main import app
from tacit.planners.search import SearchTuning

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "policy_search.md"
BLOCK = PAGE.read_text("utf-8").partition("## In the service")[2].split("```")[1]
QUICK = "--runs 2 --most 100 --seconds 600 --epsilon 1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("admin check FILE", "is a valid deployment"),
        ("admin consent FILE", "sends us one number"),
        ("admin verify FILE", "Sound"),
        ("admin rehearse FILE --virtual --users 20", "20 reports counted of 5,000 planned"),
        (f"size FILE {QUICK}", "tacit-search"),
    ],
)
def test_the_file_on_the_page_is_whole(words: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "balance.toml"
    file.write_text(BLOCK.removeprefix("toml"))
    done = CliRunner().invoke(app, words.replace("FILE", str(file)).split())
    assert done.exit_code == 0 and said in done.output, done.output or done.exception
    if "consent" in words or words.startswith("size"):  # they keep nothing, and need no witness
        file.write_text(file.read_text().replace("witness_on_same_disk", "# "))
        again = CliRunner().invoke(app, words.replace("FILE", str(file)).split())
        assert again.exit_code == 0, again.exception


def test_the_constants_are_those_of_the_code() -> None:
    table = PAGE.read_text("utf-8").split("| constant (`SearchTuning`)")[1].split("\n\n")[0]
    shown = {}
    for names, values in re.findall(r"^\| ([a-z, ]+) \| ([\d., ]+) \|", table, re.MULTILINE):
        names = names.replace("last sigma", "last_sigma")
        shown |= zip(names.split(", "), values.split(", "), strict=True)
    assert {name: float(value) for name, value in shown.items()} == asdict(SearchTuning())
