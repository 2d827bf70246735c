"""Devices of the TypeScript client, in pages and in Node, and a server of another origin."""

import importlib.util
import sys
import time
from pathlib import Path

import httpx
import pytest

from browser.showcase import browser
from patience import PATIENCE

pytestmark = pytest.mark.browser

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "service" / "devices.py"
_spec = importlib.util.spec_from_file_location("devices", SCRIPT)
devices = importlib.util.module_from_spec(_spec)
sys.modules["devices"] = devices
_spec.loader.exec_module(devices)

EPSILON, BATCH = 12.0, 8


def counted(address: str) -> int:
    page = httpx.get(f"{address}/v1/dashboard", timeout=PATIENCE).json()
    return page["progress"]["accepted"]


@pytest.fixture(scope="module")
def pages():
    with browser(800, 600) as driver:
        made = devices.Pages(driver)
        yield made
        made.close()


def test_all_clients_on_the_same_tapes_lead_to_the_same_policies(pages, tmp_path) -> None:
    """Every report counted once, every policy worked out again, the same bytes published."""
    place = tmp_path / "task"
    place.mkdir()
    fleets = {"pages": pages, "node": devices.by_node, "python": devices.by_python}
    found = devices.compare(place, 3 * BATCH, fleets, pages.origin, EPSILON, BATCH)
    assert found["policies"] > 2


def test_two_tabs_of_one_person_make_one_report(pages, tmp_path) -> None:
    (person, _) = devices.begun(tmp_path, 2, EPSILON, BATCH)
    # an outbox that no other test has used
    person["number"] = 1_000_000 + int(time.time())
    with devices.serving(tmp_path, pages.origin) as address:
        said = pages.twice(address, person)
        assert counted(address) == 1 and "accepted" in said, said


def test_a_page_of_another_origin_is_kept_out(pages, tmp_path) -> None:
    (person, _) = devices.begun(tmp_path, 2, EPSILON, BATCH)
    person["number"] = 2_000_000 + int(time.time())
    with devices.serving(tmp_path, "https://other.example.org") as address:
        (said,) = pages(address, [person])
        assert "Unreachable" in said
        assert counted(address) == 0
