"""Pages of declared origins may talk to the service; others are told nothing by their browser."""

import pytest

from service.http.running import SMALL, small_service
from tacit.errors import InvalidInput
from tacit_service.config.deployment import Deployment

PAGE = "https://coach.example.org"
ASKED = {
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with small_service(tmp_path_factory.mktemp("origins"), _with([PAGE])) as running:
        yield running


def _with(origins: object) -> str:
    return f"{SMALL}origins = {origins!r}\n"


def test_a_declared_page_may_read_every_answer_and_send_reports(service) -> None:
    asked = service.client.options("/v1/reports", headers={"Origin": PAGE, **ASKED})
    assert asked.status_code == 200
    assert asked.headers["access-control-allow-origin"] == PAGE
    assert "authorization" in asked.headers["access-control-allow-headers"].lower()
    assert "access-control-allow-credentials" not in asked.headers
    for path in ("/v1/task", "/v1/policy", "/v1/taking/0", "/v1/nothing"):
        answer = service.client.get(path, headers={"Origin": PAGE})
        assert answer.headers["access-control-allow-origin"] == PAGE, path
        assert "origin" in answer.headers["vary"].lower()
        assert answer.headers["x-content-type-options"] == "nosniff"
    sent = service.client.post(
        "/v1/reports",
        json={"task_id": service.task_id, "reports": service.reports(1)},
        headers={**service.as_device, "Origin": PAGE},
    )
    assert sent.json()["outcomes"][0]["outcome"] == "accepted"
    assert sent.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("origin", ["https://other.example.org", "null", f"{PAGE}:444"])
def test_no_other_page_may(service, origin) -> None:
    asked = service.client.options("/v1/reports", headers={"Origin": origin, **ASKED})
    assert asked.status_code == 400 and "access-control-allow-origin" not in asked.headers
    answer = service.client.get("/v1/task", headers={"Origin": origin})
    assert "access-control-allow-origin" not in answer.headers


def test_without_declared_origins_there_are_no_such_answers(tmp_path) -> None:
    with small_service(tmp_path) as running:
        answer = running.client.get("/v1/task", headers={"Origin": PAGE})
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "origins", [["*"], ["coach.example.org"], [f"{PAGE}/"], ["HTTPS://x"], [7], "https://x"]
)
def test_an_origin_is_named_as_browsers_do(origins) -> None:
    with pytest.raises(InvalidInput, match=r"origins in \[server\]"):
        Deployment.parse(_with(origins), "origins.toml")
