"""The operator's calls: pause the task, let it go on, close it, issue tokens. Role operator.

They do what ``tacit admin state`` and ``tacit admin tokens`` do, for programs. Every call is
logged, without tokens and without bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema

from tacit_service.http.auth import BODY, SCHEME, Authenticator, documented, takes
from tacit_service.http.limits import read_body
from tacit_service.http.uploads import validated
from tacit_service.log_lines import event

if TYPE_CHECKING:
    from tacit_service.collector import Collector
    from tacit_service.intake.task_state import Word

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


class StateBody(BaseModel):
    """What the operator decided about the task."""

    state: Literal["open", "paused", "closed"]


class IssuedTokens(BaseModel):
    """New tokens: they are in this answer and nowhere else."""

    role: Literal["device", "operator"]
    tokens: list[str]


NEW_TOKENS = TypeAdapter(NewTokens)


def operator_api(collector: Collector, auth: Authenticator) -> APIRouter:
    """The routes. Tokens are checked before anything else is."""
    routes = APIRouter(prefix="/v1/operator", tags=["operator"], dependencies=[Depends(SCHEME)])
    limits = collector.deployment.settings.server
    turns = documented("unauthorized", "forbidden", "closed")

    async def admit(request: Request, call: str) -> None:
        await auth.admit(request)
        event("operator", "the operator calls", call=call, task=collector.deployment.stem)

    async def turned(request: Request, call: str, word: Word) -> Response:
        await admit(request, call)
        state = await run_in_threadpool(collector.set_state, word)
        return JSONResponse({"state": state.word})

    @routes.post("/pause", response_model=StateBody, responses=turns)
    async def pause(request: Request) -> Response:
        """Stand still: uploads get 409 `paused`, devices keep their reports, nothing is planned."""
        return await turned(request, "pause", "paused")

    @routes.post("/resume", response_model=StateBody, responses=turns)
    async def resume(request: Request) -> Response:
        """Go on after a pause; the time of the pause makes no report too old."""
        return await turned(request, "resume", "open")

    @routes.post("/close", response_model=StateBody, responses=turns)
    async def close(request: Request) -> Response:
        """Take no report any more, for good. Full batches still lead to policies, the rest goes."""
        return await turned(request, "close", "closed")

    @routes.post(
        "/tokens",
        status_code=201,
        response_model=IssuedTokens,
        responses=documented(*BODY),
        openapi_extra=takes(NEW_TOKENS.json_schema()),
    )
    async def tokens(request: Request) -> Response:
        """Issue tokens. They are in the answer, once; the database keeps digests."""
        await admit(request, "tokens")
        new = validated(NEW_TOKENS, await read_body(request, limits.max_body_bytes))
        issued = await run_in_threadpool(
            collector.tokens.issue, new.role, int(new.count), new.label
        )
        return JSONResponse({"role": new.role, "tokens": issued}, 201)

    return routes
