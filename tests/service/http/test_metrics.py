"""What Prometheus sees: public counts, and nothing that a message decided."""

import re

from prometheus_client.parser import text_string_to_metric_families

from patience import until
from service.http.running import JOINT, SMALL, small_service
from tacit._version import __version__
from tacit_service.http.metrics import TIMED


def samples(service) -> dict[str, float]:
    answer = service.client.get("/metrics", headers=service.as_operator)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    found = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("task") == "small"
            name = sample.name + "".join(f",{k}={v}" for k, v in sorted(labels.items()))
            found[name] = sample.value
    return found


def mixed(service) -> None:
    """Two accepted, one duplicate, one stale, one malformed."""
    first, second, old, wrong = service.reports(4)
    old["version"], wrong["message"] = 9, "AAAA"
    outcomes = service.upload([first, second, first, old, wrong]).json()["outcomes"]
    names = [outcome["outcome"] for outcome in outcomes]
    assert names == ["accepted", "accepted", "duplicate", "stale", "invalid"]


def test_counts_of_the_local_model(service) -> None:
    mixed(service)
    service.client.get("/v1/policy/99")
    service.client.get("/no/such/address")
    found = samples(service)
    assert found["tacit_reports_total,outcome=accepted"] == 2
    assert found["tacit_reports_total,outcome=duplicate"] == 1
    assert found["tacit_reports_total,outcome=stale"] == 1
    assert found["tacit_reports_total,outcome=invalid"] == 1
    assert found["tacit_http_requests_total,route=/v1/reports,status=2xx"] == 1
    assert found["tacit_http_requests_total,route=/v1/policy/{version},status=4xx"] == 1
    assert found["tacit_http_requests_total,route=other,status=4xx"] == 1
    assert found["tacit_accepted"] == 2 and found["tacit_population"] == 40
    assert found["tacit_policy_version"] == 0 and found["tacit_released_users"] == 0
    assert found["tacit_planner_alive"] == 1
    assert 3.9 < found["tacit_budget,amount=epsilon,part=spent"] <= 4.0 + 1e-5
    assert found["tacit_ledger_verified"] == 1


def test_joint_model_counts_nothing_that_content_decides(tmp_path) -> None:
    with small_service(tmp_path, JOINT) as service:
        mixed(service)
        found = samples(service)
        assert found["tacit_reports_total,outcome=accepted"] == 2
        assert not any("invalid" in name for name in found)


def test_only_routes_that_take_nothing_are_timed_and_no_client_is_named(service) -> None:
    mixed(service)
    for address in ("/v1/task", "/v1/policy", "/v1/dashboard", "/v1/policy/0"):
        assert service.client.get(address).status_code == 200
    found = samples(service)
    for name in found:
        assert not re.search(r"latency|bytes|client|token|created", name), name
    timed = {n.split("route=")[1] for n in found if n.startswith("tacit_http_request_duration")}
    assert {"/v1/task", "/v1/policy"} <= timed <= TIMED
    assert not any("report" in route for route in TIMED)


def test_planning_is_timed_as_a_whole(tmp_path) -> None:
    name = "tacit_planner_duration_seconds_count"
    text = SMALL.replace("minimum_batch = 100", "minimum_batch = 5")
    with small_service(tmp_path, text) as service:
        assert samples(service)[name] == 0
        for _ in range(service.collector.status().next_batch):
            assert service.upload(service.reports(1)).status_code == 200
        until(lambda: samples(service)[name] > 0)
        assert samples(service)[f"tacit_build_info,model=local,version={__version__}"] == 1


def test_two_applications_do_not_share_counts(service, tmp_path) -> None:
    service.upload(service.reports(2))
    (tmp_path / "other").mkdir()
    with small_service(tmp_path / "other") as other:
        assert "tacit_reports_total,outcome=accepted" not in samples(other)
