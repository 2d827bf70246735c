"""The dashboard in a real Chromium, against a real server process with people in its database."""

import contextlib
import json

import httpx
import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from browser.showcase import asked_for, browser, media, populate, resize, serving
from patience import PATIENCE, until
from tacit.privacy.guarantee import Guarantee

pytestmark = pytest.mark.browser

DESK, PHONE, SMALL_PHONE = (1280, 900), (390, 844), (320, 568)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path, token = populate(tmp_path_factory.mktemp("coach"), 1_000, 2_000, 100, 6.0)
    with serving(path, token) as running:
        yield running


@pytest.fixture(scope="module")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def driver(downloads):
    with browser(*DESK, downloads) as chromium:
        yield chromium


@pytest.fixture
def page(driver, server):
    """The dashboard, freshly loaded on a desk; no test may leave an error in the console."""
    resize(driver, *DESK)
    media(driver)
    driver.get_log("browser")
    asked_for(driver)
    driver.get(server.url + "/")
    yield driver
    assert driver.get_log("browser") == []
    outside = [u for u in asked_for(driver) if not u.startswith((server.url, "data:"))]
    assert outside == []


def text(driver, name: str) -> str:
    """Read in one step: parts of the page are exchanged while it is open."""
    found: str = driver.execute_script(
        "return document.getElementById(arguments[0]).innerText.trim()", name
    )
    return found


def steadily(act):
    """Do something to an element again if it was exchanged meanwhile."""
    for _ in range(20):
        with contextlib.suppress(StaleElementReferenceException):
            return act()
    raise AssertionError("the page does not hold still")


def accepted(driver) -> int:
    return int(text(driver, "accepted").replace(",", ""))


def sections(driver) -> list[str]:
    return [s.get_attribute("id") for s in driver.find_elements(By.TAG_NAME, "section")]


def overflow(driver) -> tuple[int, list[str]]:
    """How far the page is wider than the screen, and which elements stick out of it."""
    return tuple(
        driver.execute_script(
            """
            const wide = document.documentElement.clientWidth;
            const out = [...document.querySelectorAll("body *")].filter((e) =>
              !e.closest(".scroll") && !e.matches(".skip, .hidden") &&
              e.getBoundingClientRect().right > wide + 1);
            return [document.documentElement.scrollWidth - wide, out.map((e) => e.outerHTML)];
            """
        )
    )


def test_the_page_says_what_the_json_says(page, server) -> None:
    data = httpx.get(f"{server.url}/v1/dashboard", timeout=PATIENCE).json()
    assert page.title == "Daily coach · tacit"
    assert accepted(page) == data["progress"]["accepted"] >= 1_000
    assert text(page, "version") == str(data["versions"][-1]["version"])
    assert float(text(page, "value")) == pytest.approx(
        data["value"]["points"][-1]["middle"], abs=0.01
    )
    assert "healthy" in text(page, "top")
    wanted = ["cards", "progress", "worth", "map", "budget", "forecast", "guarantee", "health"]
    assert sections(page) == wanted
    assert all(s.is_displayed() for s in page.find_elements(By.TAG_NAME, "section"))
    assert len(page.find_elements(By.CSS_SELECTOR, "svg.plot")) == 2


@pytest.mark.parametrize("size", [DESK, PHONE, SMALL_PHONE])
def test_nothing_sticks_out_of_the_screen(page, size) -> None:
    resize(page, *size)
    page.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    assert overflow(page) == (0, [])
    smallest = page.execute_script(
        "return Math.min(...[...document.querySelectorAll('.plot text')].map("
        "(t) => t.getBoundingClientRect().height))"
    )
    assert smallest >= 9 if size == SMALL_PHONE else smallest >= 11  # still readable


def test_new_reports_show_up_without_a_reload(page, server) -> None:
    before, version = accepted(page), int(text(page, "version"))
    page.execute_script("window.untouched = true")
    steadily(lambda: page.find_element(By.CSS_SELECTOR, "#versions summary").click())
    steadily(
        lambda: page.find_element(By.ID, "version-choice").send_keys("")
    )  # keyboard in the form
    server.send(100)
    until(lambda: accepted(page) == before + 100)
    until(lambda: int(text(page, "version")) > version)
    assert page.execute_script("return window.untouched") is True
    assert page.execute_script("return document.getElementById('versions').open") is True
    assert page.execute_script("return document.activeElement.id") == "version-choice"
    until(lambda: "Live: as of" in text(page, "live"))


def test_the_guarantee_can_be_downloaded_and_checked(page, server, downloads) -> None:
    page.find_element(By.ID, "download").click()
    until(lambda: list(downloads.glob("guarantee-*.json")))
    (file,) = downloads.glob("guarantee-*.json")
    until(lambda: file.stat().st_size > 0)
    said = json.loads(file.read_text())
    assert said == httpx.get(f"{server.url}/v1/guarantee", timeout=PATIENCE).json()
    assert Guarantee.from_json(said["guarantee"]).digest() in text(page, "guarantee")


def table(driver) -> list[list[str]]:
    """Letters of the action map, by state."""
    rows: list[list[str]] = driver.execute_script(
        "return [...document.querySelectorAll('#map-table tbody tr')].map("
        "row => [...row.querySelectorAll('td')].map(cell => cell.innerText.trim()))"
    )
    return rows


def policy(server, version: int) -> list[list[str]]:
    """The same from the API."""
    actions = httpx.get(f"{server.url}/v1/policy/{version}", timeout=PATIENCE).json()["policy"][
        "actions"
    ]
    return [["ABCD"[step[s]] for step in actions] for s in range(len(actions[0]))]


def test_the_action_map_switches_between_versions(page, server) -> None:
    assert table(page) == policy(server, int(text(page, "version")))
    for version in (1, 3):
        Select(page.find_element(By.ID, "version-choice")).select_by_value(str(version))
        until(lambda v=version: f"version={v}" in page.current_url)
        assert table(page) == policy(server, version)
    page.refresh()
    assert table(page) == policy(server, 3)


def test_the_map_switches_without_the_script_too(server) -> None:
    html = httpx.get(f"{server.url}/?version=1", timeout=PATIENCE).text
    assert "policy version 1</caption>" in html
    assert '<form class="controls" action="" method="get"' in html


def test_everything_is_reached_by_keyboard_and_seen_there(page) -> None:
    page.execute_script("window.scrollTo(0, 0)")
    seen = []
    for _ in range(14):
        page.switch_to.active_element.send_keys(Keys.TAB)
        here = page.switch_to.active_element
        seen.append(here.get_attribute("id") or here.text or here.tag_name)
        outline = here.value_of_css_property("outline-style")
        assert outline != "none", seen[-1]
        if seen[-1] == "The same as JSON":
            break
    assert seen[0] == "Skip to the numbers"
    assert {"version-choice", "map-show", "map-scroll", "download"} <= set(seen)
    assert seen[-1] == "The same as JSON"


def test_dark_light_and_paper(page) -> None:
    def ground() -> int:
        colour = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))

    light = ground()
    media(page, dark=True)
    dark = ground()
    assert light > 600 and dark < 150
    media(page, printed=True)
    assert not page.find_element(By.ID, "map-form").is_displayed()
    assert page.find_element(By.ID, "map-table").is_displayed()
    assert ground() > 750


def test_scripts_of_others_do_not_run(driver, server) -> None:
    driver.get(server.url + "/")
    driver.execute_script(
        """
        const script = document.createElement("script");
        script.textContent = "window.foreign = true";
        document.body.append(script);
        const image = "<img src=x onerror='window.foreign = true'>";
        document.body.insertAdjacentHTML("beforeend", image);
        const placed = document.body.lastElementChild;
        placed.addEventListener("error", () => { window.tried = true; });
        """
    )
    until(lambda: driver.execute_script("return window.tried"))  # after the image's own handler
    assert driver.execute_script("return window.foreign === undefined") is True
    until(
        lambda: any(
            "Content Security Policy" in entry["message"] for entry in driver.get_log("browser")
        ),
        "a complaint",
    )
