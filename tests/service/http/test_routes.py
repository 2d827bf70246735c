"""Every route, every named error, who may do what."""

import json
import time

import httpx
import pytest

from tacit._version import __version__
from tacit.wire import documents
from tacit_service.http import auth


def code(answer: httpx.Response) -> str:
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "hint"} and error["message"]
    return error["code"]


def test_task_says_what_is_learned(shared) -> None:
    answer = shared.client.get("/v1/task")
    assert answer.status_code == 200
    body = answer.json()
    assert body["tacit"] == __version__ and body["wire"] == 3
    assert body["task_id"] == shared.collector.deployment.task_id
    assert body["model"] == "local"
    assert body["task"]["users"] == 40


def test_policy_has_an_etag_and_is_not_sent_twice(shared) -> None:
    first = shared.client.get("/v1/policy")
    assert first.status_code == 200 and first.json()["version"] == 0
    tag = first.headers["etag"]
    assert first.headers["cache-control"] == "no-cache"
    for held in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = shared.client.get("/v1/policy", headers={"If-None-Match": held})
        assert again.status_code == 304 and again.content == b"" and again.headers["etag"] == tag
    changed = shared.client.get("/v1/policy", headers={"If-None-Match": '"other"'})
    assert changed.status_code == 200 and changed.content == first.content
    named = shared.client.get("/v1/policy/0")
    assert named.content == first.content and named.headers["etag"] == tag


def test_a_device_can_ask_before_it_randomizes(shared) -> None:
    answer = shared.client.get("/v1/taking/0")
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    assert answer.json() == {
        "task_id": shared.collector.deployment.task_id,
        "version": 0,
        "publication": documents.publication_hash(shared.client.get("/v1/policy/0").json()),
        "taken": True,
        "reason": None,
        "message": None,
    }
    never = shared.client.get("/v1/taking/9").json()
    assert (never["taken"], never["reason"], never["publication"]) == (False, "stale", None)
    assert "has not been published" in never["message"]


def test_unknown_versions(shared) -> None:
    missing = shared.client.get("/v1/policy/7")
    assert missing.status_code == 404 and code(missing) == "unknown_version"
    for bad in ("x", "-1", "1.5", "9" * 5000):
        answer = shared.client.get(f"/v1/policy/{bad}")
        assert answer.status_code == 422 and code(answer) == "invalid"


def test_guarantee_is_public_and_of_real_noise(shared) -> None:
    body = shared.client.get("/v1/guarantee").json()
    guarantee = body["guarantee"]
    assert "differential privacy per participation, local model" in body["statement"]
    assert guarantee["model"] == "local" and guarantee["simulated"] is False
    assert guarantee["epsilon"] <= 4.0 + 1e-6


def test_head_says_what_get_says_without_the_body(shared) -> None:
    for path in ("/v1/task", "/v1/policy", "/healthz", "/v1/guarantee"):
        get, head = shared.client.get(path), shared.client.head(path)
        assert head.status_code == 200 and head.content == b""
        assert head.headers["content-length"] == get.headers["content-length"]
    assert shared.client.head("/v1/reports").status_code == 405


def test_other_methods_are_refused_with_the_ones_allowed(shared) -> None:
    for path in ("/v1/task", "/v1/policy", "/v1/policy/0", "/v1/guarantee", "/healthz", "/metrics"):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            answer = shared.client.request(method, path)
            assert answer.status_code == 405 and code(answer) == "method_not_allowed"
            assert answer.headers["allow"] == "GET, HEAD"
    answer = shared.client.get("/v1/reports")
    assert answer.status_code == 405 and answer.headers["allow"] == "POST"


def test_unknown_addresses(shared) -> None:
    for path in ("/nothing", "/v1/task/", "/docs", "/v1", "/%ff/../x"):
        answer = shared.client.get(path)
        assert answer.status_code == 404 and code(answer) == "not_found"


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("POST", "/v1/reports", "device"),
        ("GET", "/v1/ledger", "operator"),
        ("GET", "/metrics", "operator"),
    ],
)
def test_who_may_do_what(shared, method: str, path: str, role: str) -> None:
    tokens = {"device": shared.device, "operator": shared.operator}
    for given in (
        None,
        "",
        "Bearer",
        "Bearer wrong",
        "Bearer \xe9",
        f"Basic {tokens[role]}",
        f"Bearer {tokens[role]}x",
        f"Bearer {tokens[role][:-1]}",
    ):
        headers = {} if given is None else {"Authorization": given.encode("latin-1")}
        answer = shared.client.request(method, path, headers=headers)
        assert answer.status_code == 401 and code(answer) == "unauthorized"
        assert answer.headers["www-authenticate"].startswith("Bearer")
    for other, token in tokens.items():
        headers = {"Authorization": f"bearer {token}"}
        answer = shared.client.request(method, path, headers=headers)
        if other == role:
            assert answer.status_code in (200, 415)  # 415: let in, but sent no JSON
        else:
            assert answer.status_code == 403 and code(answer) == "forbidden"


def test_a_revoked_token_is_refused_within_a_second(shared, monkeypatch) -> None:
    assert auth.BELIEVED <= 1.0
    monkeypatch.setattr(auth, "BELIEVED", 0.2)
    token = shared.collector.tokens.issue("operator", 1, "to be revoked")[0]
    headers = {"Authorization": f"Bearer {token}"}
    assert shared.client.get("/metrics", headers=headers).status_code == 200
    number = max(known.id for known in shared.collector.tokens.list())
    shared.collector.tokens.revoke(number)
    time.sleep(0.25)
    assert shared.client.get("/metrics", headers=headers).status_code == 401


def test_ledger_is_whole(shared) -> None:
    ledger = shared.client.get("/v1/ledger", headers=shared.as_operator).json()
    assert ledger["verified"] is True and ledger["lines"] >= 1


def test_health(shared) -> None:
    answer = shared.client.get("/healthz")
    assert answer.status_code == 200
    expected = {"status": "ok", "tacit": __version__, "database": True, "planner": True}
    assert answer.json() == expected


def test_every_answer_carries_the_security_headers(shared) -> None:
    for path in ("/v1/task", "/v1/policy", "/healthz", "/nothing", "/metrics"):
        headers = shared.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "server" not in headers


def test_the_document_names_every_error(shared) -> None:
    document = shared.client.get("/openapi.json").json()
    assert set(document["paths"]) >= {
        *("/v1/task", "/v1/policy", "/v1/policy/{version}", "/v1/reports", "/v1/guarantee"),
        *("/v1/ledger", "/healthz", "/metrics", "/", "/v1/dashboard"),
    }
    upload = document["paths"]["/v1/reports"]["post"]
    assert set(upload["responses"]) == {
        *("200", "400", "401", "403", "404", "408", "409", "413", "415", "422", "500", "503"),
    }
    reports = upload["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert reports["reports"]["maxItems"] == shared.collector.deployment.settings.server.max_batch
    assert "/v1/policy" in json.dumps(document)
