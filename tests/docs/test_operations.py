"""The files in deploy/: they parse, and name metrics, settings and options that exist."""

import configparser
import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import yaml
from typer.testing import CliRunner

from patience import PATIENCE
from service.conftest import postgres_server  # noqa: F401
from service.http.running import JOINT, small_service
from tacit.cli.main import app
from tacit_service.config.sections import SECTIONS
from tacit_service.http.server import bind

FOLDER = Path(__file__).parents[2] / "deploy"


@pytest.fixture(scope="module")
def metrics(tmp_path_factory) -> set[str]:
    with small_service(tmp_path_factory.mktemp("metrics")) as service:
        service.upload(service.reports(1))
        service.client.get("/v1/policy")
        text = service.client.get("/metrics", headers=service.as_operator).text
    return set(re.findall(r"^(tacit_\w+)", text, re.MULTILINE))


def test_alerts_ask_for_metrics_that_are_given(metrics: set[str]) -> None:
    (group,) = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("page", "ticket") and rule["annotations"]["summary"]
        asked = set(re.findall(r"tacit_\w+", rule["expr"]))
        assert asked and asked <= metrics, rule["alert"]


def test_the_grafana_page_asks_for_metrics_that_are_given(metrics: set[str]) -> None:
    panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 5
    for panel in panels:
        for target in panel["targets"]:
            asked = set(re.findall(r"tacit_\w+", target["expr"]))
            assert asked and asked <= metrics, panel["title"]


def is_setting(name: str) -> bool:
    section, _, key = name.removeprefix("TACIT_").lower().partition("_")
    known = SECTIONS[section]
    return key in known or key.removesuffix("_file") in known


def options(command: list[str]) -> set[str]:
    assert command[0] == "serve"
    help_text = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    return {word for word in command if word.startswith("--") and word not in help_text}


def test_compose_uses_real_settings_options_and_secrets() -> None:
    read = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    services = read["services"]
    assert set(services) == {"server", "planner", "database"}
    for name in ("server", "planner"):
        one = services[name]
        assert all(is_setting(setting) for setting in one["environment"])
        assert options(one["command"]) == set() and name in one["command"]
        assert one["read_only"] and one["cap_drop"] == ["ALL"]
        assert (FOLDER.parent / one["build"]["dockerfile"]).is_file()
    assert {s for one in services.values() for s in one["secrets"]} == set(read["secrets"])
    assert all(port.startswith("127.0.0.1:") for port in services["server"]["ports"])


def probe(service: dict, ports: dict[str, str]) -> bool:
    """Whether the container's own health check passes."""
    _, _, flag, code = service["healthcheck"]["test"]
    for port, real in ports.items():
        code = code.replace(port, real)
    return subprocess.run([sys.executable, flag, code], stderr=subprocess.DEVNULL).returncode == 0


def test_the_commands_of_compose_work_together(tmp_path: Path, postgres_server: str) -> None:  # noqa: F811
    """Its server and its planner, with its environment, on a real database; paths moved here."""
    services = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    folders = {place: tmp_path / place[1:] for place in ("/etc/tacit", "/var/lib", "/run/secrets")}
    for folder in (*folders.values(), folders["/var/lib"] / "tacit"):
        folder.mkdir(parents=True, exist_ok=True)
    text = JOINT.replace("witness_on_same_disk = true", "")
    (folders["/etc/tacit"] / "task.toml").write_text(text)
    (folders["/run/secrets"] / "database").write_text(postgres_server.replace("NAME", "postgres"))
    ports = {}
    for port in ("8080", "8081"):
        with bind("127.0.0.1", 0) as free:
            ports[port] = str(free.getsockname()[1])

    def moved(text: str) -> str:
        for place, folder in folders.items():
            text = text.replace(place, str(folder))
        return ports.get(text, text)

    environment = {name: moved(v) for name, v in services["server"]["environment"].items()}
    environment["TACIT_SERVER_HOST"] = "127.0.0.1"
    program = [sys.executable, "-c", "from tacit.cli.main import main; main()"]
    with contextlib.ExitStack() as stack:
        for name in ("server", "planner"):
            command = [*program, *map(moved, services[name]["command"])]
            process = subprocess.Popen(
                command, env=os.environ | environment, stdout=subprocess.DEVNULL
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            deadline = time.monotonic() + PATIENCE
            while not probe(services[name], ports):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.5)
        ready = f"http://127.0.0.1:{ports['8081']}/readyz"
        while httpx.get(ready, timeout=PATIENCE).status_code != 200:
            assert time.monotonic() < deadline
            time.sleep(0.5)
        assert len(list(folders["/etc/tacit"].iterdir())) == 1  # it is mounted read-only
        token = (folders["/var/lib"] / "tacit/task.operator-token").read_text().strip()
        page = httpx.get(
            f"http://127.0.0.1:{ports['8081']}/metrics",
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE,
        ).text
        assert (
            "tacit_planner_duration_seconds_bucket" in page and 'tacit_ready{task="task"} 1' in page
        )


def test_the_image_runs_as_nobody_and_copies_what_is_there() -> None:
    text = (FOLDER / "Containerfile").read_text()
    assert re.findall(r"^USER (\w+)", text, re.MULTILINE) == ["tacit"]
    for line in re.findall(r"^COPY ((?!--).+)$", text, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (FOLDER.parent / source).exists(), source
    assert options(json.loads(re.findall(r"^CMD (.+)$", text, re.MULTILINE)[0])) == set()


def test_the_unit_is_hardened_and_sets_real_settings() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    text = (FOLDER / "tacit@.service").read_text()
    unit.read_string(text)
    service = unit["Service"]
    assert options(shlex.split(service["ExecStart"])[1:]) == set()
    assert service["ProtectSystem"] == "strict" and service["DynamicUser"] == "yes"
    named = re.findall(r"^Environment=(TACIT_\w+)=", text, re.MULTILINE)
    assert named and all(is_setting(name) for name in named if name != "TACIT_CACHE_DIR")
