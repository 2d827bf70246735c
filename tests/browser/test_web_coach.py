"""The page one can try: a person plays in a real Chromium, against a service of another origin."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from selenium.webdriver.common.by import By

from browser.showcase import asked_for, browser
from patience import PATIENCE, until

pytestmark = pytest.mark.browser

RUN = Path(__file__).resolve().parents[2] / "examples" / "web_coach" / "run.py"
ROWS = "return document.getElementById('days').rows.length"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    out = tmp_path_factory.mktemp("web coach")
    running = subprocess.Popen(
        [sys.executable, RUN, "--port", "0", "--users", "60", "--out", out],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        for line in running.stdout:
            if "Play a week at" in line:
                yield line.split("Play a week at ")[1].split()[0], out
                break
        else:
            raise AssertionError("the example did not start")
    finally:
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def driver():
    with browser(1280, 1000) as chromium:
        yield chromium


def text(driver, name: str) -> str:
    return driver.execute_script("return document.getElementById(arguments[0]).textContent", name)


def click(driver, name: str) -> None:
    until(lambda: driver.find_element(By.ID, name).is_displayed())
    driver.find_element(By.ID, name).click()


def play(driver, url: str, days: int) -> None:
    """So many days; then the person stops, unless the week is over."""
    driver.get(url)
    click(driver, "wake")
    for day in range(days):
        until(lambda: text(driver, "message").startswith("The coach: "))
        click(driver, "sleep")
        until(lambda day=day: driver.execute_script(ROWS) == day + 1)
    if days < 7:
        click(driver, "leave")


@pytest.mark.parametrize("days", [0, 2, 7])
def test_a_person_plays_sees_the_report_and_sends_it(driver, page, days) -> None:
    url, _ = page
    asked_for(driver)
    play(driver, url, days)
    until(lambda: text(driver, "body"))
    collector = driver.find_element(By.ID, "dashboard").get_attribute("href").rstrip("/")
    before = httpx.get(f"{collector}/v1/dashboard", timeout=PATIENCE).json()["progress"]["accepted"]
    seen = json.loads(text(driver, "body"))["reports"][0]
    assert set(seen) == {"id", "message", "publication", "rules", "version"}
    assert "drawn before you began" in text(driver, "asked")
    named = driver.find_elements(By.CSS_SELECTOR, "#cells i.sent")
    true = driver.find_elements(By.CSS_SELECTOR, "#cells i.own")
    assert len(named) > 1 and 1 <= len(true) <= 2, "a rating is rounded at random"
    assert not any("/v1/reports" in address for address in asked_for(driver)), "nothing left yet"
    click(driver, "send")
    until(lambda: "accepted" in text(driver, "outcome"))
    after = httpx.get(f"{collector}/v1/dashboard", timeout=PATIENCE).json()["progress"]["accepted"]
    assert after == before + 1
    until(lambda: text(driver, "progress").startswith(f"{after} of 2000"))
    origins = {collector, url.rstrip("/")}
    outside = [a for a in asked_for(driver) if not a.startswith((*origins, "data:"))]
    assert outside == [] and len(origins) == 2
    complaints = [e["message"] for e in driver.get_log("browser") if "favicon" not in e["message"]]
    assert complaints == []


def test_every_policy_can_be_worked_out_again(page) -> None:
    _, out = page
    done = subprocess.run(
        [sys.executable, "-c", "from tacit.cli.main import main; main()"]
        + ["admin", "verify", str(out / "web.toml")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
