"""The page about a guarantee's JSON names every key that there is, and no other."""

import re
from pathlib import Path

import tacit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "guarantee.md"


def keys_of_table(begin: str, end: str) -> set[str]:
    """Keys in the first column of the table between two headings."""
    table = PAGE.read_text("utf-8").partition(begin)[2].partition(end)[0]
    cells = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    return {key for cell in cells for key in re.findall(r"`(\w+)`", cell)}


def test_the_page_has_a_row_for_every_key() -> None:
    rule = tacit.Participation(3, "lifetime", period="30d")
    agent = tacit.agent("tacit-joint", epsilon=1.0)
    once = tacit.guarantee("river-swim", agent, episodes=100, participation=rule)
    keys = set(once.to_json()) | set(once.compose(2).to_json())
    assert keys_of_table("# The guarantee as JSON", "## The bound on regret") == keys
    assert {"rule", "parts"} <= keys
    bound = tacit.bound("river-swim", agent, 100)
    assert keys_of_table("## The bound on regret", "## What others ask for") == set(bound.to_json())
