"""The operator's calls: what they do to the task, who may make them, and what is written of it."""

from contextlib import closing

import pytest

from patience import until
from service.http.running import JOINT, small_service
from tacit.client.device import Device
from tacit.client.errors import NotTaken
from tacit.client.transport import Api

CALLS = ("pause", "resume", "close", "tokens")


def call(service, name: str, **body: object):
    address = f"/v1/operator/{name}"
    return service.client.post(address, json=body or None, headers=service.as_operator)


def issue(service, **body: object) -> list[str]:
    answer = call(service, "tokens", **{"count": 1, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()["tokens"]


def test_a_device_meets_a_pause_and_loses_nothing(service, tmp_path) -> None:
    (token,) = issue(service)
    with (
        closing(Api(service.url, attempts=1)) as api,
        Device(api, tmp_path / "outbox", max_epsilon=9.0, token=token) as device,
        Device(api, None, max_epsilon=9.0, token=token) as later,
    ):
        device.begin().leave()
        report = service.reports(1)
        assert call(service, "pause").json() == {"state": "paused"}
        answer = service.upload(report)
        assert answer.status_code == 409 and answer.json()["error"]["code"] == "paused"
        assert int(answer.headers["retry-after"]) > 0
        (held,) = device.send()
        assert (held.outcome, held.reason) == (None, "paused")
        with pytest.raises(NotTaken, match="is paused"):
            later.begin()
        assert service.client.get("/readyz").status_code == 200
        assert "Paused by its operator" in service.client.get("/").text
        assert call(service, "resume").json() == {"state": "open"}
        (sent,) = device.send()
        assert sent.outcome == "accepted"
        later.begin()


def test_a_closed_task_stays_closed(service) -> None:
    service.upload(service.reports(2))
    assert call(service, "close").json() == {"state": "closed"}
    (outcome,) = service.upload(service.reports(1)).json()["outcomes"]
    assert (outcome["outcome"], outcome["reason"]) == ("refused", "closed")
    for name in ("resume", "pause"):
        answer = call(service, name)
        assert answer.status_code == 409 and answer.json()["error"]["code"] == "closed"
    until(lambda: service.collector.status().finished)
    assert "Closed by its operator" in service.client.get("/").text
    assert service.client.get("/v1/policy").status_code == 200


def test_tokens_are_issued_for_either_role(service) -> None:
    made = issue(service, count=3, label="wave")
    assert len(set(made)) == 3
    assert {t.label for t in service.collector.tokens.list() if t.role == "device"} >= {"wave"}
    (other,) = issue(service, role="operator")
    headers = {"Authorization": f"Bearer {other}"}
    assert service.client.get("/v1/ledger", headers=headers).status_code == 200
    for body in ({"count": 0}, {"count": 1001}, {"count": True}, {"role": "king"}, {"more": 1}):
        answer = call(service, "tokens", **body)
        assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid", body


def test_only_the_operator_may_and_no_secret_is_logged(service, caplog) -> None:
    caplog.set_level("INFO", "tacit.service")
    (made,) = issue(service)
    for headers, status in (({}, 401), ({"Authorization": "Bearer wrong"}, 401)):
        for name in CALLS:
            answer = service.client.post(f"/v1/operator/{name}", headers=headers)
            assert answer.status_code == status, name
    for name in CALLS:
        answer = service.client.post(f"/v1/operator/{name}", headers=service.as_device)
        assert answer.status_code == 403, name
    assert service.collector.state().word == "open"
    events = [record for record in caplog.records if record.event == "operator"]
    assert [(one.facts["call"], one.facts["task"]) for one in events] == [("tokens", "small")]
    for secret in (made, service.device, service.operator):
        assert secret not in caplog.text


def test_the_joint_model_has_them_too(tmp_path) -> None:
    with small_service(tmp_path, JOINT) as service:
        assert call(service, "pause").json() == {"state": "paused"}
        assert call(service, "resume").json() == {"state": "open"}
