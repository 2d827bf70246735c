"""A deployment with people in it, a server process on it, and a browser to look at it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from patience import PATIENCE, until
from tacit.kernels.raw.rollout import rollout, uniforms_per_episode
from tacit.privacy.noise import SecureNoise
from tacit.problems.tabular import TabularMDP
from tacit.publication import Publication
from tacit.trajectory import Trajectory
from tacit.wire import documents, messages
from tacit.wire.report_rules import rules_hash
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.planning.loop import PlannerLoop
from tacit_service.responses import IncomingReport

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
)
COACH = """
[task]
name = "Daily coach"
states = ["calm, weekday", "tense, weekday", "tired, weekday",
          "calm, weekend", "tense, weekend", "tired, weekend"]
actions = ["no message", "suggest a walk", "breathing exercise", "praise"]
horizon = 7
homogeneous = true
[agent]
name = "tacit-local"
epsilon = 4.0
[population]
users = {population}
tokens = "shared"
[updates]
minimum_batch = {batch}
"""


def coaching() -> TabularMDP:
    """A made-up truth: walks help the tired, breathing the tense, praise keeps people calm."""
    helps = {0: 3, 1: 2, 2: 1}  # mood: action
    P, R = np.zeros((6, 4, 6)), np.zeros((6, 4))
    for s in range(6):
        mood, weekend = s % 3, s // 3
        for a in range(4):
            good = 0.75 if helps[mood] == a else 0.25 + 0.1 * (a == 0)
            law = np.array([good, 0.5 * (1 - good), 0.5 * (1 - good)])
            P[s, a, 3 * weekend : 3 * weekend + 3] = 0.8 * law
            P[s, a, 3 * (1 - weekend) : 3 * (1 - weekend) + 3] = 0.2 * law
            R[s, a] = 0.85 * good * (1.0 if mood == 0 else 0.7)
    return TabularMDP(P, R, horizon=7, initial=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05], name="coach")


class People:
    """Simulated users who live through the coaching problem and report what was asked."""

    def __init__(self, deployment: Deployment, seed: int = 0) -> None:
        self.deployment, self.problem = deployment, coaching()
        self.rng, self.noise = np.random.default_rng(seed), SecureNoise()

    def reports(self, publication: Publication, count: int) -> list[IncomingReport]:
        """Randomized reports of that many people under one policy."""
        bound, H = self.deployment.bound, self.problem.horizon
        contribution = np.zeros(bound.statistic.layout.size, dtype=np.int64)
        found = []
        for uniforms in self.rng.random((count, uniforms_per_episode(H))):
            states, actions = np.zeros(H + 1, dtype=np.int64), np.zeros(H, dtype=np.int64)
            rewards, identity = np.zeros(H), messages.new_report_id()
            truth, table = self.problem.truth, publication.policy.actions
            rollout(truth, table, uniforms, states, actions, rewards)
            coin = messages.coin(self.deployment.task_id, identity)
            lived = Trajectory(states, actions, rewards)
            bound.statistic.contribute(lived, publication, coin, contribution)
            sent = messages.device_message(bound, contribution, publication, coin, self.noise)
            made_by, message = rules_hash(self.deployment.rules), messages.pack_message(sent)
            found.append(IncomingReport(identity, publication.version, message, rules=made_by))
        return found


class Past:
    """A clock that starts some days ago."""

    def __init__(self, days: float) -> None:
        self.now = time.time() - 86_400.0 * days

    def __call__(self) -> float:
        return self.now


def populate(
    folder: Path, users: int, population: int, batch: int, days: float
) -> tuple[Path, str]:
    """A database with so many reports, spread over the last days; its file and a device token."""
    path = folder / "coach.toml"
    path.write_text(COACH.format(population=population, batch=batch))
    deployment, clock = Deployment.load(path), Past(days)
    with Collector.open(deployment, clock=clock) as collector:
        planner, people = PlannerLoop(collector), People(deployment)
        (token,) = collector.tokens.issue("device", 1, "browser tests")
        while (left := users - collector.status().accepted) > 0:
            status = collector.status()
            send = min(left, status.next_batch)
            publication = collector.billboard.published(status.version).publication
            collector.upload(deployment.task_id, people.reports(publication, send), None)
            clock.now += send / users * 86_400.0 * days * (0.6 + 0.75 * people.rng.random())
            clock.now = min(clock.now, time.time())
            while planner.step():
                pass
        planner.stop()
    return path, token


@dataclass(frozen=True)
class Server:
    """A running server, and somebody who can send reports to it."""

    url: str
    token: str
    people: People

    def send(self, count: int) -> None:
        """Reports over HTTP, under the newest policy."""
        deployment = self.people.deployment
        answer = httpx.get(f"{self.url}/v1/policy", timeout=PATIENCE)
        body = answer.raise_for_status().json()
        publication = documents.publication_from_json(body, deployment.task, deployment.task_id)
        reports = [
            {"id": r.id, "version": r.version, "message": r.message, "rules": r.rules}
            for r in self.people.reports(publication, count)
        ]
        answer = httpx.post(
            f"{self.url}/v1/reports",
            json={"task_id": deployment.task_id, "reports": reports},
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=PATIENCE,
        ).raise_for_status()
        assert {o["outcome"] for o in answer.json()["outcomes"]} == {"accepted"}


@contextmanager
def serving(path: Path, token: str) -> Iterator[Server]:
    """``tacit serve`` in a process of its own, on a free port."""
    command = [sys.executable, "-c", "from tacit.cli.main import main; main()"]
    process = subprocess.Popen(
        [*command, "serve", str(path), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert "http://" in first, "the server did not start"
        url = "http://" + first.split("http://")[1].split()[0]
        until(lambda: healthy(url))
        yield Server(url, token, People(Deployment.load(path), seed=1))
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/healthz", timeout=PATIENCE).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def browser(width: int, height: int, folder: Path | None = None) -> Iterator[webdriver.Chrome]:
    """A fresh Chromium that logs what it asks the network for."""
    for program in (CHROMIUM, DRIVER):
        if not program.exists():
            raise RuntimeError(
                f"{program} is missing: the dashboard is tested in a real browser; install "
                "Debian's packages chromium and chromium-driver (make test-browser does)"
            )
    os.environ["SE_AVOID_STATS"] = "true"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        if folder is not None:
            options.add_experimental_option(
                "prefs",
                {"download.default_directory": str(folder), "download.prompt_for_download": False},
            )
        driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
        try:
            driver.set_page_load_timeout(PATIENCE)
            driver.set_script_timeout(PATIENCE)
            resize(driver, width, height)
            yield driver
        finally:
            driver.quit()


def resize(driver: webdriver.Chrome, width: int, height: int) -> None:
    """The screen of a phone or of a desk."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def media(driver: webdriver.Chrome, *, dark: bool = False, printed: bool = False) -> None:
    """What the person prefers, or paper."""
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": "print" if printed else "", "features": [scheme]}
    )


def asked_for(driver: webdriver.Chrome) -> list[str]:
    """Every address the pages asked the network for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    return [params["request"]["url"] for params in sent]
