"""The operator's API of a server of several tasks: list, create, pause, resume, close, tokens.

One token opens it, made at the first start. The server keeps its digest only. Every call is logged,
by what was asked of which task, without tokens and without bodies.
"""

from __future__ import annotations

import hmac
import os
import secrets
import time
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema

from tacit.errors import InvalidInput
from tacit_service.folder import NAME
from tacit_service.http.auth import SCHEME, documented, secret_of, unauthorized
from tacit_service.http.errors import ApiError
from tacit_service.http.limits import JSON, TEXT, read_body
from tacit_service.http.monitoring import READY_SECONDS, Probes, trouble_in
from tacit_service.http.uploads import validated
from tacit_service.intake.tokens import digest
from tacit_service.log_lines import event
from tacit_service.responses import Status, Trouble

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.folder import Folder
    from tacit_service.intake.task_state import Word

TOKEN, DIGEST = "operator.token", "operator.sha256"
"""Files of the server's folder: the first is for a person to take away, the second is read."""
CALLS, MISSES = 20, 5
"""Calls that are answered in one second, and refusals of wrong tokens."""
MOST_BYTES = 200_000
MOST_TOKENS = 1000
"""Of one call."""


class NewTokens(BaseModel):
    """Tokens to issue."""

    model_config = ConfigDict(extra="forbid", strict=True)
    role: Literal["device", "operator"] = "device"
    count: Annotated[
        float,  # 2.0 is an integer in JSON, true and "2" are not
        Field(ge=1, le=MOST_TOKENS, multiple_of=1),
        WithJsonSchema({"type": "integer", "minimum": 1, "maximum": MOST_TOKENS, "default": 1}),
    ] = 1
    label: Annotated[str, Field(max_length=200)] = ""


class TaskEntry(BaseModel):
    """One task as the operator sees it; numbers are null where its database does not answer."""

    name: str
    address: str
    task_id: str | None
    model: Literal["local", "joint"] | None
    state: Literal["open", "paused", "closed"] | None
    accepted: int | None
    population: int | None
    version: int | None
    finished: bool | None
    ready: bool
    reason: str | None
    message: str | None


class TaskList(BaseModel):
    """All of them, by name."""

    tasks: list[TaskEntry]


class IssuedTokens(BaseModel):
    """New tokens: they are in this answer and nowhere else."""

    role: Literal["device", "operator"]
    tokens: list[str]


NEW_TOKENS = TypeAdapter(NewTokens)


def first_token(folder: File) -> File | None:
    """Make the operator's token if there is none; the file it is in, which only its owner reads."""
    if (folder / DIGEST).exists():
        return None
    made = secrets.token_urlsafe(32)
    try:
        for name, text in ((TOKEN, made), (DIGEST, digest(made).hex())):
            with os.fdopen(
                os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w"
            ) as file:
                file.write(f"{text}\n")
    except FileExistsError:
        raise InvalidInput(
            f"{folder / TOKEN} is there, but not {DIGEST}: remove it, and a new token is made"
        ) from None
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror}") from None
    return folder / TOKEN


class Rate:
    """So many a second, and no more."""

    def __init__(self, most: int) -> None:
        self._most, self._left, self._at = most, float(most), time.monotonic()

    def spend(self) -> None:
        """Let one pass, or answer 429."""
        now = time.monotonic()
        self._left = min(float(self._most), self._left + (now - self._at) * self._most)
        self._at = now
        if self._left < 1.0:
            raise ApiError(
                "too_many_requests",
                "the operator's API is asked too often",
                "ask again in a second",
                {"Retry-After": "1"},
            )
        self._left -= 1.0


class OperatorDoor:
    """Lets the operator of the server pass; wrong tokens cannot use up the operator's calls."""

    def __init__(self, folder: File) -> None:
        self._digest = bytes.fromhex((folder / DIGEST).read_text().strip())
        self._calls, self._misses = Rate(CALLS), Rate(MISSES)

    async def admit(self, request: Request) -> None:
        """Compare digests, in a time that does not depend on them."""
        secret = secret_of(request)
        if not hmac.compare_digest(digest(secret), self._digest):
            self._misses.spend()
            event("operator_refused", "a call without the operator's token", level="warning")
            raise unauthorized(secret)
        self._calls.spend()


def operator_api(folder: Folder, door: OperatorDoor, probes: Probes) -> APIRouter:
    """The routes. Tokens are checked before anything else is."""
    routes = APIRouter(prefix="/v1/operator", tags=["operator"], dependencies=[Depends(SCHEME)])
    errors = ("unauthorized", "too_many_requests")
    body_errors = ("malformed", "request_timeout", "too_large", "unsupported_media_type", "invalid")

    async def admit(request: Request, call: str, name: str | None = None) -> None:
        await door.admit(request)
        known = name if name in folder.collectors else None
        event("operator", "the operator calls", call=call, task=known)

    def of(name: str) -> Collector:
        if name not in folder.collectors:
            raise ApiError("unknown_task", "there is no such task", "see /v1/operator/tasks")
        return folder.collectors[name]

    async def entry(name: str, status: int = 200) -> Response:
        found = await probes.ask(READY_SECONDS, only=name)
        return JSONResponse(_entry(folder, name, found[name]), status)

    @routes.get("/tasks", response_model=TaskList, responses=documented(*errors))
    async def tasks(request: Request) -> Response:
        """Every task of the server, and files that should be tasks, with what is wrong."""
        await admit(request, "list")
        found = await probes.ask(READY_SECONDS)
        listed = [_entry(folder, name, one) for name, one in sorted(found.items())]
        return JSONResponse({"tasks": listed})

    @routes.put(
        "/tasks/{name}",
        status_code=201,
        response_model=TaskEntry,
        responses=documented(*errors, *body_errors, "exists"),
        openapi_extra=_body(TEXT, {"type": "string"}),
    )
    async def create(request: Request, name: Annotated[str, Path(pattern=f"^{NAME}$")]) -> Response:
        """Begin a task from the content of its TOML file, checked as by `tacit serve --check`.

        Its database, key and witness are files of the server's folder, or where the server's
        environment puts them; it names none itself.
        """
        await admit(request, "create")
        body = await read_body(request, MOST_BYTES, TEXT)
        try:
            text = body.decode()
        except UnicodeDecodeError:
            raise ApiError("malformed", "the body is not UTF-8", "send the file as it is") from None
        await run_in_threadpool(folder.create, name, text)
        event("operator", "a task was created", call="created", task=name)
        return await entry(name, 201)

    async def turned(request: Request, name: str, call: str, word: Word) -> Response:
        await admit(request, call, name)
        await run_in_threadpool(of(name).turn, word)
        return await entry(name)

    known = documented(*errors, "unknown_task", "closed")

    @routes.post("/tasks/{name}/pause", response_model=TaskEntry, responses=known)
    async def pause(request: Request, name: str) -> Response:
        """Stand still: uploads get 409 `paused`, devices keep their reports, nothing is planned."""
        return await turned(request, name, "pause", "paused")

    @routes.post("/tasks/{name}/resume", response_model=TaskEntry, responses=known)
    async def resume(request: Request, name: str) -> Response:
        """Go on after a pause; the time of the pause makes no report too old."""
        return await turned(request, name, "resume", "open")

    @routes.post("/tasks/{name}/close", response_model=TaskEntry, responses=known)
    async def close(request: Request, name: str) -> Response:
        """Take no report any more, for good. Full batches still lead to policies, the rest goes."""
        return await turned(request, name, "close", "closed")

    @routes.post(
        "/tasks/{name}/tokens",
        status_code=201,
        response_model=IssuedTokens,
        responses=documented(*errors, *body_errors, "unknown_task"),
        openapi_extra=_body(JSON, NEW_TOKENS.json_schema()),
    )
    async def tokens(request: Request, name: str) -> Response:
        """Issue tokens of a task. They are in the answer, once; its database keeps digests."""
        await admit(request, "tokens", name)
        collector = of(name)
        new = validated(NEW_TOKENS, await read_body(request, MOST_BYTES))
        issued = await run_in_threadpool(
            collector.tokens.issue, new.role, int(new.count), new.label
        )
        return JSONResponse({"role": new.role, "tokens": issued}, 201)

    return routes


def _entry(folder: Folder, name: str, one: Status | Trouble) -> dict[str, Any]:
    collector, trouble = folder.collectors.get(name), trouble_in(one)
    now = one if isinstance(one, Status) else None
    numbers = ("state", "accepted", "population", "version", "finished")
    return {
        "name": name,
        "address": f"/t/{name}/",
        "task_id": collector and collector.deployment.task_id,
        "model": collector and collector.deployment.model,
        **{key: now and getattr(now, key) for key in numbers},
        "ready": trouble is None,
        "reason": trouble and trouble.reason,
        "message": trouble and trouble.sentence,
    }


def _body(form: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The form of a body for the OpenAPI document; it is read by hand, after the token."""
    return {"requestBody": {"required": True, "content": {form: {"schema": schema}}}}
