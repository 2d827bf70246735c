"""Reports over HTTP: outcomes, idempotence, limits, and bodies that are not uploads."""

import asyncio
import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from patience import PATIENCE
from tacit.wire import documents
from tacit_service.http.uploads import Writer
from tacit_service.intake.uploads import PendingReport
from tacit_service.responses import IncomingReport, Outcome, Unavailable, UploadAnswer

JSON = {"Content-Type": "application/json"}


def test_reports_are_accepted_once_and_answered_in_order(service) -> None:
    reports = service.reports(5)
    first = service.upload(reports)
    assert first.status_code == 200
    body = first.json()
    assert body["task_id"] == service.task_id and body["version"] == 0
    assert [o["id"] for o in body["outcomes"]] == [r["id"] for r in reports]
    assert {o["outcome"] for o in body["outcomes"]} == {"accepted"}
    again = service.upload(reports).json()
    assert {o["outcome"] for o in again["outcomes"]} == {"duplicate"}
    assert service.collector.status().accepted == 5


def test_one_id_twice_in_one_upload_counts_once(service) -> None:
    report = service.reports(1)[0]
    outcomes = service.upload([report, report]).json()["outcomes"]
    assert [o["outcome"] for o in outcomes] == ["accepted", "duplicate"]


def test_one_upload_holds_every_kind_of_outcome(service) -> None:
    good, stale, short, text = service.reports(4)
    stale["version"] = 7
    short["message"] = "AAAA"
    text["message"] = "no base64"
    outcomes = service.upload([good, stale, short, text]).json()["outcomes"]
    assert [o["outcome"] for o in outcomes] == ["accepted", "stale", "invalid", "invalid"]
    assert outcomes[0]["reason"] is None and outcomes[0]["detail"] is None
    assert all(o["detail"] for o in outcomes[1:])


def test_the_population_is_never_exceeded_by_concurrent_uploads(service) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(service.upload, [service.reports(9) for _ in range(6)]))
    outcomes = [o for answer in answers for o in answer.json()["outcomes"]]
    assert sum(o["outcome"] == "accepted" for o in outcomes) == 40
    late = {o["reason"] for o in outcomes if o["outcome"] == "refused"}
    assert late == {"population_reached"}
    assert service.collector.status().accepted == 40


def test_an_unknown_task(shared) -> None:
    answer = shared.upload(shared.reports(1), task_id="0" * 64)
    assert answer.status_code == 404 and answer.json()["error"]["code"] == "unknown_task"


def test_too_many_reports(shared) -> None:
    answer = shared.upload(shared.reports(21))
    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_many_reports"
    assert shared.collector.status().accepted == 0


GOOD = {"id": "0" * 32, "version": 0, "message": ""}


@pytest.mark.parametrize(
    "body",
    [
        *(None, [], "text", 7, {}, {"task_id": "x"}, {"task_id": "x", "reports": []}),
        {"task_id": 7, "reports": [GOOD]},
        {"task_id": "x", "reports": {}},
        {"task_id": "x", "reports": [GOOD], "more": 1},
        {"task_id": "x", "reports": [GOOD, None]},
        {"task_id": "x", "reports": [GOOD | {"id": "0" * 31}]},
        {"task_id": "x", "reports": [GOOD | {"id": "0" * 31 + "G"}]},
        {"task_id": "x", "reports": [GOOD | {"id": "0" * 32 + "\n"}]},
        {"task_id": "x", "reports": [GOOD | {"version": -1}]},
        {"task_id": "x", "reports": [GOOD | {"version": 1.5}]},
        {"task_id": "x", "reports": [GOOD | {"version": True}]},
        {"task_id": "x", "reports": [GOOD | {"version": "0"}]},
        {"task_id": "x", "reports": [GOOD | {"version": 2**63}]},
        {"task_id": "x", "reports": [GOOD | {"message": None}]},
        {"task_id": "x", "reports": [GOOD | {"extra": 1}]},
        {"task_id": "x", "reports": [{"id": "0" * 32, "version": 0}]},
    ],
)
def test_json_of_another_form_is_invalid(shared, body: object) -> None:
    content = json.dumps(body).encode()
    answer = shared.client.post("/v1/reports", content=content, headers=shared.as_device | JSON)
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid"


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"\xff\xfe", b"{}{}", b'{"task_id": "\xff"}', b"'x'", b"\x00"),
        *(b"[" * 100_000, b'{"a":' * 10_000, b'{"reports": [NaN'),
    ],
)
def test_what_is_not_json_is_malformed(shared, body: bytes) -> None:
    answer = shared.client.post("/v1/reports", content=body, headers=shared.as_device | JSON)
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "malformed"


def test_odd_json_never_fails(service) -> None:
    report = json.dumps(service.reports(1)[0])
    task = f'"task_id": "{service.task_id}"'
    for body in (
        f'{{{task}, {task}, "reports": [{report}]}}',  # a key twice
        f'{{"reports": [], "reports": [{report}], {task}}}',
        f'{{{task}, "reports": [{report.replace(": 0", ": NaN")}]}}',
        f'{{{task}, "reports": [{report.replace(": 0", ": 1e999")}]}}',
        f'{{{task}, "reports": [{report.replace(": 0", ": " + "9" * 5000)}]}}',
        f'{{"task_id": "\\ud800", "reports": [{report}]}}',
    ):
        content = body.encode("utf-8", "surrogatepass")
        headers = service.as_device | JSON
        answer = service.client.post("/v1/reports", content=content, headers=headers)
        assert answer.status_code in (200, 400, 404, 422)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/jsonx"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {},
    ],
)
def test_other_media_types(shared, headers: dict[str, str]) -> None:
    answer = shared.client.post("/v1/reports", content=b"{}", headers=shared.as_device | headers)
    assert answer.status_code == 415
    assert answer.json()["error"]["code"] == "unsupported_media_type"


def test_a_database_that_fails_is_503_and_says_nothing(service, monkeypatch, caplog) -> None:
    from sqlalchemy.exc import OperationalError

    secret = "text of a user"

    def fail(*_: object) -> None:
        raise OperationalError(f"INSERT {secret}", {"message": secret}, Exception(secret))

    monkeypatch.setattr(service.collector, "settle", fail)
    with caplog.at_level(logging.DEBUG):
        answer = service.upload(service.reports(1))
    assert answer.status_code == 503 and answer.json()["error"]["code"] == "unavailable"
    assert answer.headers["retry-after"] == "1"
    assert secret not in answer.text and secret not in caplog.text
    assert "OperationalError" in caplog.text


def test_a_defect_is_500_and_says_nothing(service, monkeypatch, caplog) -> None:
    secret = "text of a user"

    def fail(*_: object) -> None:
        raise RuntimeError(secret)

    monkeypatch.setattr(service.collector, "settle", fail)
    with caplog.at_level(logging.DEBUG):
        answer = service.upload(service.reports(1))
    assert answer.status_code == 500 and answer.json()["error"]["code"] == "internal"
    assert secret not in answer.text and secret not in caplog.text
    assert "RuntimeError" in caplog.text


def test_nothing_of_a_body_reaches_a_log(service, caplog) -> None:
    reports = service.reports(3)
    reports[1]["message"] = "canary+canary+canary"
    reports[2]["version"] = 424242
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("uvicorn.error").setLevel(logging.DEBUG)
        service.upload(reports)
        service.upload([{**reports[0], "canary": "canary"}])
        service.client.post("/v1/reports", content=b"{canary", headers=service.as_device | JSON)
    written = " ".join(record.getMessage() + str(vars(record)) for record in caplog.records)
    for word in ("canary", "424242", service.device, *(r["id"] for r in reports)):
        assert word not in written
    assert documents.VERSION == 3


class SlowCollector:
    """Notes which uploads came together; the first transaction takes until it is let go."""

    def __init__(self, fails: int = -1) -> None:
        self.groups: list[list[list[PendingReport]]] = []
        self.fails = fails
        self.begun, self.going_on = threading.Event(), threading.Event()

    def settle(self, uploads: list[list[PendingReport]]) -> list[UploadAnswer]:
        self.groups.append(list(uploads))
        self.begun.set()
        assert self.going_on.wait(PATIENCE)
        if len(self.groups) - 1 == self.fails:
            raise Unavailable("away")
        return [UploadAnswer("", len(self.groups), [o.fault for o in u]) for u in uploads]


def upload_of(size: int, mark: str) -> list[PendingReport]:
    fault = Outcome(mark, "accepted", None, None)
    return [PendingReport(IncomingReport(mark), b"", 0, fault=fault) for _ in range(size)]


async def hand_in(collector: SlowCollector, sizes: list[int]) -> list[Any]:
    """One upload alone, the others while it is being written."""
    writer = Writer(collector)
    tasks = [asyncio.create_task(writer.settle(upload_of(1, "first")))]
    await asyncio.to_thread(collector.begun.wait, PATIENCE)
    for i, size in enumerate(sizes):
        tasks.append(asyncio.create_task(writer.settle(upload_of(size, str(i)))))
    await asyncio.sleep(0.0)  # each of them is handed in
    collector.going_on.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_uploads_that_wait_together_are_written_together() -> None:
    collector = SlowCollector()
    answers = asyncio.run(hand_in(collector, [2000, 2500, 400, 6000, 10]))
    assert [len(group) for group in collector.groups] == [1, 3, 1, 1]
    assert [answer.version for answer in answers] == [1, 2, 2, 2, 3, 4]
    marks = [answer.outcomes[0].id for answer in answers]
    assert marks == ["first", "0", "1", "2", "3", "4"], "everybody gets their own outcomes"


def test_a_transaction_that_fails_is_said_to_those_in_it_and_to_nobody_else() -> None:
    answers = asyncio.run(hand_in(SlowCollector(fails=1), [3000, 3000]))
    assert [type(answer).__name__ for answer in answers] == [
        *("UploadAnswer", "Unavailable", "UploadAnswer")
    ]


def test_an_upload_is_written_even_if_its_client_has_gone() -> None:
    collector = SlowCollector()

    async def leave() -> UploadAnswer:
        writer = Writer(collector)
        gone = asyncio.create_task(writer.settle(upload_of(1, "gone")))
        await asyncio.to_thread(collector.begun.wait, PATIENCE)
        also_gone = asyncio.create_task(writer.settle(upload_of(1, "also gone")))
        stays = asyncio.create_task(writer.settle(upload_of(1, "stays")))
        await asyncio.sleep(0.0)
        gone.cancel()
        also_gone.cancel()
        collector.going_on.set()
        return await stays

    assert asyncio.run(leave()).outcomes[0].id == "stays"
    assert [upload[0].name for group in collector.groups for upload in group] == [
        *("gone", "also gone", "stays")
    ]
