"""From the bytes of a request to reports, and from outcomes to the bytes of an answer."""

from __future__ import annotations

import json

from pydantic import ValidationError

from tacit.service.answers import IncomingReport, UploadAnswer
from tacit.service.http.errors import ApiError, invalid
from tacit.service.http.models import UPLOAD


def parse(body: bytes, max_batch: int) -> tuple[str, list[IncomingReport]]:
    """Task id and reports of an upload; refused whole if its form is wrong."""
    try:
        upload = UPLOAD.validate_json(body)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        if problems[0]["type"] == "json_invalid":
            raise ApiError("malformed", "the body is not JSON", "send one JSON object") from None
        raise invalid(problems) from None
    reports = upload["reports"]
    if len(reports) > max_batch:
        raise ApiError(
            "too_many_reports",
            f"{len(reports):,} reports in one upload, but at most {max_batch:,} are taken",
            f"split them into uploads of {max_batch:,}",
        )
    if any(report["version"] % 1 for report in reports):
        raise ApiError("invalid", "reports: a version must be a whole number")
    return upload["task_id"], [
        IncomingReport(report["id"], int(report["version"]), report["message"])
        for report in reports
    ]


def answer(answer: UploadAnswer) -> bytes:
    """The body of the answer."""
    return json.dumps(answer.to_json(), separators=(",", ":")).encode()
