"""The two addresses of the dashboard: a page for people, the same as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse

from tacit.service.dashboard.page import Window, content_security_policy, render
from tacit.service.dashboard.view import build
from tacit.service.dashboard.watch import Watch

if TYPE_CHECKING:
    from tacit.service.collector import Collector

Number = Annotated[int, Query(ge=0, le=2**31 - 1)]
AnyVersion = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="None for the newest.")]


def router(collector: Collector) -> APIRouter:
    """Routes that show a collector's public numbers; nobody needs a token for them."""
    routes, watch = APIRouter(tags=["dashboard"]), Watch(collector)

    @routes.get("/", response_class=HTMLResponse, summary="Dashboard")
    def page(version: AnyVersion = None, states: Number = 0, steps: Number = 0) -> HTMLResponse:
        """Users, policies, value, budget, forecast, guarantee and health, on one page."""
        facts = watch.look(version)
        html = render(build(facts), facts, Window(version, states, steps))
        return HTMLResponse(html, headers={"Content-Security-Policy": content_security_policy()})

    @routes.get("/v1/dashboard", response_class=JSONResponse, summary="Dashboard as JSON")
    def data(version: AnyVersion = None, states: Number = 0, steps: Number = 0) -> dict[str, Any]:
        """What the page says; ``stamp`` changes when it does. ``policy`` is that of ``version``."""
        return build(watch.look(version)).to_json()

    return routes
