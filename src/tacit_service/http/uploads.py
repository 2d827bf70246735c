"""From the bytes of a request to reports, to disk, and from outcomes to the bytes of an answer.

What is decided about each of them, in one transaction, is in ``intake/uploads.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from pydantic import TypeAdapter, ValidationError

from tacit.errors import TacitError
from tacit_service.http.errors import ApiError, invalid
from tacit_service.http.models import UPLOAD
from tacit_service.responses import IncomingReport, UploadAnswer

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.intake.uploads import PendingReport

T = TypeVar("T")
ANSWER = TypeAdapter(UploadAnswer)
GROUP = 5000
"""Reports in one transaction at most (one upload may have more)."""


def parse(body: bytes, max_batch: int) -> tuple[str | None, list[IncomingReport]]:
    """Task id and reports of an upload; refused whole if its form is wrong."""
    upload = validated(UPLOAD, body)
    reports = upload["reports"]
    if len(reports) > max_batch:
        raise ApiError(
            "too_many_reports",
            f"{len(reports):,} reports in one upload, but at most {max_batch:,} are taken",
            f"split them into uploads of {max_batch:,}",
        )
    versions = [report.get("version") for report in reports]
    if any(version is not None and version % 1 for version in versions):
        raise ApiError("invalid", "reports: a version must be a whole number")
    return upload.get("task_id"), [
        IncomingReport(
            report["id"],
            None if version is None else int(version),
            report["message"],
            report.get("publication"),
            report.get("rules"),
        )
        for report, version in zip(reports, versions, strict=True)
    ]


def validated(form: TypeAdapter[T], body: bytes) -> T:
    """A body in the form that it must have; what is wrong with it is told without its values."""
    try:
        return form.validate_json(body)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        if problems[0]["type"] == "json_invalid":
            raise ApiError("malformed", "the body is not JSON", "send one JSON object") from None
        raise invalid(problems) from None


class Writer:
    """Commits uploads, all that wait at the same time in one transaction.

    One thread writes, while the event loop reads the next uploads. Threads that take turns would
    spend more time on handing the interpreter to each other than on the reports.
    """

    def __init__(self, collector: Collector) -> None:
        self._collector = collector
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tacit-writer")
        self._waiting: list[tuple[list[PendingReport], asyncio.Future[UploadAnswer]]] = []
        self._turn: asyncio.Task[None] | None = None

    async def settle(self, upload: list[PendingReport]) -> UploadAnswer:
        """Outcomes of an upload, when they are durable; it is carried out even if nobody waits."""
        done: asyncio.Future[UploadAnswer] = asyncio.get_running_loop().create_future()
        self._waiting.append((upload, done))
        if self._turn is None:
            self._turn = asyncio.create_task(self._settle_waiting())
        return await done

    async def _settle_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                group = self._take()
                uploads = [upload for upload, _ in group]
                answers = await loop.run_in_executor(self._thread, self._settle, uploads)
                for answer, (_, done) in zip(answers, group, strict=True):
                    if done.done():  # the client has gone
                        continue
                    if isinstance(answer, Exception):
                        done.set_exception(answer)
                    else:
                        done.set_result(answer)
        finally:
            self._turn = None

    def _settle(self, uploads: list[list[PendingReport]]) -> Sequence[UploadAnswer | Exception]:
        """Answers, or what went wrong; an upload that nobody foresaw fails alone."""
        try:
            return self._collector.settle(uploads)
        except TacitError as error:
            return [error] * len(uploads)
        except Exception as error:
            if len(uploads) == 1:
                return [error]
            return [answer for upload in uploads for answer in self._settle([upload])]

    def _take(self) -> list[tuple[list[PendingReport], asyncio.Future[UploadAnswer]]]:
        """The uploads that waited longest, as many as fit."""
        size, count = 0, 0
        for upload, _ in self._waiting:
            size += len(upload)
            if count and size > GROUP:
                break
            count += 1
        group, self._waiting = self._waiting[:count], self._waiting[count:]
        return group
