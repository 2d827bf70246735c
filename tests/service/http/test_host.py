"""Several tasks in one server: each under its own address, with the operator's API for all."""

import re
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from patience import PATIENCE, until
from service.devices import local_reports, sent
from service.http.running import JOINT, SMALL, running
from service.http.test_fuzz import fuzz
from tacit.client.device import Device
from tacit.client.errors import NotTaken
from tacit.client.transport import Api
from tacit_service.folder import Folder
from tacit_service.http import operator
from tacit_service.http.host import Host

TASKS = "/v1/operator/tasks"


class Hosted:
    """A running server of a folder, with a client that has the operator's token."""

    def __init__(self, folder: Folder, url: str, client: httpx.Client) -> None:
        self.folder, self.url, self.client = folder, url, client
        self.operator = (folder.path / operator.TOKEN).read_text().strip()
        client.headers["Authorization"] = f"Bearer {self.operator}"

    @property
    def device(self) -> str:
        return self.tokens("one")[0]

    def tokens(self, name: str, **body: object) -> list[str]:
        answer = self.client.post(f"{TASKS}/{name}/tokens", json=body)
        assert answer.status_code == 201, answer.text
        return answer.json()["tokens"]

    def create(self, name: str, text: str = SMALL) -> httpx.Response:
        headers = {"Content-Type": "text/plain"}
        return self.client.put(f"{TASKS}/{name}", content=text, headers=headers)

    def turn(self, name: str, call: str) -> httpx.Response:
        return self.client.post(f"{TASKS}/{name}/{call}")

    def upload(self, name: str, number: int = 1, seed: int = 1) -> httpx.Response:
        collector = self.folder.collectors[name]
        made = local_reports(collector, np.random.default_rng(seed), number)
        reports = [sent(report) for report in made]
        return self.client.post(
            f"/t/{name}/v1/reports",
            json={"task_id": collector.deployment.task_id, "reports": reports},
            headers={"Authorization": f"Bearer {self.tokens(name)[0]}"},
        )


@contextmanager
def hosted(path: Path, *, serves: bool = True) -> Iterator[Hosted]:
    operator.first_token(path)
    folder = Folder(path)
    app = Host(folder, serves=serves)
    folder.start()
    with running(app) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        yield Hosted(folder, url, client)


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosted]:
    monkeypatch.setattr(operator, "CALLS", 10_000)
    monkeypatch.setattr(operator, "MISSES", 10_000)
    (tmp_path / "one.toml").write_text(SMALL)
    with hosted(tmp_path) as running_host:
        yield running_host


def test_tasks_are_apart_and_answer_as_if_alone(host) -> None:
    assert host.create("two", SMALL.replace('"small"', '"other"')).status_code == 201
    ids = {name: host.client.get(f"/t/{name}/v1/task").json()["task_id"] for name in ("one", "two")}
    assert ids["one"] != ids["two"]
    assert host.upload("one", 3).json()["outcomes"][0]["outcome"] == "accepted"
    assert host.upload("two", 1).status_code == 200
    listed = {task["name"]: task for task in host.client.get(TASKS).json()["tasks"]}
    assert (listed["one"]["accepted"], listed["two"]["accepted"]) == (3, 1)
    strange = host.client.post(
        "/t/two/v1/reports",
        json={"task_id": ids["two"], "reports": []},
        headers={"Authorization": f"Bearer {host.tokens('one')[0]}"},
    )
    assert strange.status_code == 401  # a token of one task opens no other
    assert host.client.get("/t/one/v1/policy").json()["version"] == 0
    assert host.client.get("/t/one", follow_redirects=True).url.path == "/t/one/"
    assert "other" in host.client.get("/t/two/").text
    page = host.client.get("/").text
    assert 'href="t/one/"' in page and "1 of 40 reports" in page
    for missing in ("/t/three/", "/t/three", "/t/", "/v1/task"):
        assert host.client.get(missing).status_code == 404
    servers = host.client.get("/t/two/openapi.json").json()["servers"]
    assert servers == [{"url": "/t/two"}]


def test_a_device_meets_a_pause_and_loses_nothing(host, tmp_path) -> None:
    (token,) = host.tokens("one")
    with (
        closing(Api(f"{host.url}/t/one", attempts=1)) as api,
        Device(api, tmp_path / "outbox", max_epsilon=9.0, token=token) as device,
        Device(api, None, max_epsilon=9.0, token=token) as later,
    ):
        device.begin().leave()
        assert host.turn("one", "pause").json()["state"] == "paused"
        answer = host.upload("one")
        assert answer.status_code == 409 and answer.json()["error"]["code"] == "paused"
        assert int(answer.headers["retry-after"]) > 0
        (held,) = device.send()
        assert (held.outcome, held.reason) == (None, "paused")
        with pytest.raises(NotTaken, match="is paused"):
            later.begin()
        assert host.client.get("/readyz").status_code == 200
        assert "Paused by its operator" in host.client.get("/t/one/").text
        host.turn("one", "resume")
        (sent,) = device.send()
        assert sent.outcome == "accepted"
        later.begin()


def test_a_closed_task_stays_closed(host) -> None:
    host.upload("one", 2)
    assert host.turn("one", "close").json()["state"] == "closed"
    (outcome,) = host.upload("one", seed=2).json()["outcomes"]
    assert (outcome["outcome"], outcome["reason"]) == ("refused", "closed")
    for call in ("resume", "pause"):
        answer = host.turn("one", call)
        assert answer.status_code == 409 and answer.json()["error"]["code"] == "closed"
    until(lambda: host.client.get(TASKS).json()["tasks"][0]["finished"])
    assert "Closed by its operator" in host.client.get("/t/one/").text
    assert host.client.get("/t/one/v1/policy").status_code == 200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "this is not TOML"),
        (SMALL.replace("epsilon", "epsilom"), "new.toml: tacit-local is private and needs"),
        (SMALL.replace('name = "small"', 'nam = "small"'), r"\[task\] has no key 'nam'"),
        (SMALL + '[storage]\ndatabase = "sqlite:////etc/x.db"', "database in .* leave it out"),
        (SMALL + '[storage]\nkey_file = "one.db"', "key_file in .* leave it out"),
        (SMALL + '[storage]\nwitness = "../w"', "witness in .* leave it out"),
        (SMALL.replace("horizon", 'features = "../f.npy"\nhorizon'), "must name a .npy file in"),
        (JOINT.replace("witness_on_same_disk = true", ""), "on the disk of the database"),
    ],
)
def test_a_wrong_task_is_refused_in_a_sentence(host, text: str, said: str) -> None:
    answer = host.create("new", text)
    assert answer.status_code == 422
    assert re.search(said, answer.json()["error"]["message"])
    assert sorted(file.name for file in host.folder.path.glob("new*")) == []


def test_names_are_held_to_the_folder_and_taken_once(host) -> None:
    for name in ("..%2Fup", ".hidden", "Big", "x" * 41):
        assert host.create(name).status_code in (404, 422)
    again = host.create("one")
    assert again.status_code == 409 and again.json()["error"]["code"] == "exists"
    assert host.create("joint", JOINT).json()["model"] == "joint"
    made = host.folder.path / "joint.toml"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600 and not list(made.parent.glob("*.draft"))


def test_only_the_operator_may_and_no_secret_is_logged(host, caplog) -> None:
    caplog.set_level("INFO", "tacit.service")
    (device,) = host.tokens("one")
    (own,) = host.tokens("one", role="operator")
    calls = [
        ("GET", TASKS),
        ("PUT", f"{TASKS}/x"),
        ("POST", f"{TASKS}/one/close"),
        ("GET", "/metrics"),
    ]
    for secret in (device, own, "wrong"):
        for method, path in calls:
            answer = host.client.request(
                method, path, headers={"Authorization": f"Bearer {secret}"}
            )
            assert answer.status_code == 401, (method, path)
    assert host.folder.collectors["one"].state().word == "open"
    assert host.client.get("/t/one/v1/ledger", headers={"Authorization": f"Bearer {own}"}).json()
    events = [record for record in caplog.records if record.event == "operator"]
    assert [(one.facts["call"], one.facts["task"]) for one in events] == [("tokens", "one")] * 2
    assert any(record.event == "operator_refused" for record in caplog.records)
    for secret in (device, own, host.operator):
        assert secret not in caplog.text
        for file in host.folder.path.iterdir():
            assert file.name == operator.TOKEN or secret.encode() not in file.read_bytes()
    for name in (operator.TOKEN, operator.DIGEST):
        assert stat.S_IMODE((host.folder.path / name).stat().st_mode) == 0o600
    assert operator.first_token(host.folder.path) is None  # made once


def test_calls_and_refusals_are_rationed_apart(tmp_path) -> None:
    with hosted(tmp_path) as host:
        wrong = {"Authorization": "Bearer wrong"}
        refused = [host.client.get(TASKS, headers=wrong).status_code for _ in range(30)]
        assert set(refused) == {401, 429}
        assert host.client.get(TASKS).json() == {"tasks": []}  # the operator still gets in
        assert host.client.get("/readyz").json()["ready"]


def test_files_that_are_put_there_are_served_and_mistakes_are_named(host) -> None:
    (host.folder.path / "bad.toml").write_text(SMALL.replace("epsilon", "epsilom"))
    (host.folder.path / "late.toml").write_text(SMALL)
    until(lambda: {"late"} <= host.folder.collectors.keys() and "bad" in host.folder.problems)
    answer = host.client.get("/readyz")
    assert answer.status_code == 503 and answer.json()["tasks"] == ["bad"]
    assert answer.json()["reason"] == "file"
    assert answer.json()["message"].startswith("bad: bad.toml: tacit-local is private")
    assert host.client.get("/t/late/readyz").status_code == 200
    text = host.client.get("/metrics").text
    assert 'tacit_ready{task="bad"} 0.0' in text and 'tacit_ready{task="late"} 1.0' in text
    (host.folder.path / "bad.toml").write_text(SMALL)
    until(lambda: host.client.get("/readyz").status_code == 200)
    assert host.client.get("/t/bad/v1/task").status_code == 200


def test_a_planner_of_its_own_can_be_watched(tmp_path) -> None:
    (tmp_path / "one.toml").write_text(SMALL)
    with hosted(tmp_path, serves=False) as host:
        until(lambda: host.client.get("/readyz").status_code == 200)
        assert (
            'tacit_planner_duration_seconds_count{task="one"}' in host.client.get("/metrics").text
        )
        for path in ("/t/one/v1/task", TASKS, "/"):
            assert host.client.get(path).status_code == 404


def test_the_operators_api_keeps_its_document(host, tmp_path) -> None:
    more = '[[operations]]\ninclude-path = "/v1/operator/tasks/{name}"\n'
    more += "[operations.checks]\npositive_data_acceptance.enabled = false\n"  # TOML has rules
    made = fuzz(host, tmp_path, "--max-examples", "10", "--generation-deterministic", more=more)
    assert made > 100
    assert host.client.get("/healthz").json()["status"] == "ok"
