"""Errors that a client sees: a status, a code to program against, a sentence, a hint.

The body is always ``{"error": {"code", "message", "hint"}}``. Nothing of a request is repeated in a
log; an unexpected failure is logged by its type and place alone, because the text of an exception
may hold what was being handled.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from tacit.errors import InvalidInput, TacitError
from tacit_service.http.readiness import place
from tacit_service.responses import (
    Paused,
    ServiceRefused,
    TaskClosed,
    Unavailable,
    UnknownTask,
    UnknownVersion,
)

log = logging.getLogger("tacit.service")

CODES: dict[str, int] = {
    "malformed": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "unknown_task": 404,
    "unknown_version": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "paused": 409,
    "closed": 409,
    "too_large": 413,
    "too_many_reports": 413,
    "unsupported_media_type": 415,
    "invalid": 422,
    "too_many_requests": 429,
    "internal": 500,
    "unavailable": 503,
}
"""Every code with its status; the OpenAPI document lists them."""


_KINDS: dict[type[TacitError], tuple[str, str | None]] = {
    UnknownTask: ("unknown_task", "fetch /v1/task"),
    UnknownVersion: ("unknown_version", "fetch /v1/policy"),
    Paused: ("paused", "keep the report, and send the same bytes later"),
    TaskClosed: ("closed", None),
    InvalidInput: ("invalid", "compare with /openapi.json"),
}
"""What a client is told of our errors, the narrower kinds first: code and hint."""


class ApiError(TacitError):
    """Answered as it is: the code decides the status."""

    def __init__(
        self,
        code: str,
        message: str,
        hint: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.hint, self.headers = code, message, hint, headers

    def response(self) -> JSONResponse:
        """The answer."""
        body = {"error": {"code": self.code, "message": self.message, "hint": self.hint}}
        return JSONResponse(body, CODES[self.code], self.headers)


def answer_unexpected(error: Exception) -> Response:
    """A failure that is not the client's: logged without content, answered without detail."""
    # those that are expected are logged where they begin and end
    if not isinstance(error, Unavailable | ServiceRefused):
        log.error("%s in %s", type(error).__name__, place(error))
    if isinstance(error, Unavailable | ServiceRefused | SQLAlchemyError | OSError):
        return ApiError(
            "unavailable",
            "the service cannot answer at the moment",
            "send the same request again, with the same report ids, after a pause",
            {"Retry-After": "1"},
        ).response()
    return ApiError(
        "internal",
        "the service failed on this request",
        "this is a defect: tell the operator when it happened; the request may be sent again",
    ).response()


def install(app: FastAPI) -> None:
    """Give every error that is not unexpected the same shape."""

    async def answer(request: Request, error: Exception) -> Response:
        return shape(error).response()

    for kind in (TacitError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


def shape(error: Exception) -> ApiError:
    """What a client is told of an error that says what is wrong with the request; or it goes on."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RequestValidationError):
        return invalid(error.errors())
    if isinstance(error, HTTPException):
        return _http_error(error)
    for kind, (code, hint) in _KINDS.items():
        if isinstance(error, kind):
            headers = {"Retry-After": "60"} if code == "paused" else None
            return ApiError(code, str(error), hint, headers)
    raise error


def invalid(problems: Any) -> ApiError:
    """The first complaint of the validator, by place and rule, without the value."""
    first: Mapping[str, Any] = problems[0]
    where = ".".join(str(part) for part in first["loc"])[:200]
    rest = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return ApiError(
        "invalid", f"{where or 'body'}: {first['msg']}{rest}", "compare with /openapi.json"
    )


def _http_error(error: HTTPException) -> ApiError:
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        if "GET" in allowed:
            allowed += ", HEAD"
        return ApiError(
            "method_not_allowed",
            "this address does not take this method",
            f"use {allowed}",
            {"Allow": allowed},
        )
    if error.status_code == 404:
        return ApiError("not_found", "nothing is at this address", "see /openapi.json")
    return ApiError("malformed", "the request could not be read", "see /openapi.json")
