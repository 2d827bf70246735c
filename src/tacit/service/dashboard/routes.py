"""The two addresses of the dashboard: a page for people, the same as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from tacit.service.dashboard.page import Window, content_security_policy, render
from tacit.service.dashboard.view import build
from tacit.service.dashboard.watch import Watch
from tacit.service.http.routes import documented

if TYPE_CHECKING:
    from tacit.service.collector import Collector

Number = Annotated[int, Query(ge=0, le=2**31 - 1)]
AnyVersion = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="None for the newest.")]


def router(collector: Collector) -> APIRouter:
    """Routes that show a collector's public numbers; nobody needs a token for them."""
    routes, watch = APIRouter(tags=["dashboard"]), Watch(collector)

    html: dict[int | str, dict[str, Any]] = {
        200: {"content": {"text/html": {"schema": {"type": "string"}}}}
    }

    @routes.get(
        "/", response_class=Response, summary="Dashboard", responses=documented("invalid") | html
    )
    def page(version: AnyVersion = None, states: Number = 0, steps: Number = 0) -> Response:
        """Users, policies, value, budget, forecast, guarantee and health, on one page."""
        facts = watch.look(version)
        drawn = render(build(facts), facts, Window(version, states, steps))
        return HTMLResponse(drawn, headers={"Content-Security-Policy": content_security_policy()})

    @routes.get("/v1/dashboard", summary="Dashboard as JSON", responses=documented("invalid"))
    def data(version: AnyVersion = None) -> dict[str, Any]:
        """What the page says; ``stamp`` changes when it does. ``policy`` is that of ``version``."""
        return build(watch.look(version)).to_json()

    return routes
