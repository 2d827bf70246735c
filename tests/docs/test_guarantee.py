"""The page about a guarantee's JSON names every key that there is, and no other."""

import re
from pathlib import Path

import tacit

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "guarantee.md"


def test_the_page_has_a_row_for_every_key() -> None:
    rule = tacit.Participation(3, "lifetime", period="30d")
    agent = tacit.agent("tacit-joint", epsilon=1.0)
    once = tacit.guarantee("river-swim", agent, episodes=100, participation=rule)
    keys = set(once.to_json()) | set(once.compose(2).to_json())
    table = PAGE.read_text("utf-8").split("## What others ask for")[0]
    cells = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    assert {key for cell in cells for key in re.findall(r"`(\w+)`", cell)} == keys
    assert {"rule", "parts"} <= keys
