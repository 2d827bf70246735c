"""The page: one template, one style sheet and one short script, all inline, nothing from elsewhere.

Works without the script; with it, what has changed is drawn again by the server and swapped in.
"""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from tacit.privacy.sentences import at_most
from tacit.util.durations import in_words
from tacit_service.dashboard import plots, words
from tacit_service.dashboard.facts import FactReader, Facts
from tacit_service.dashboard.outlook import outlook_of
from tacit_service.dashboard.view import ActionMap, View, build, thinned
from tacit_service.http.auth import documented
from tacit_service.http.errors import ApiError
from tacit_service.planning.publications import Version

if TYPE_CHECKING:
    from tacit_service.collector import Collector


Number = Annotated[int, Query(ge=0, le=2**31 - 1)]
AnyVersion = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="None for the newest.")]


def router(collector: Collector) -> APIRouter:
    """Routes that show a collector's public numbers; nobody needs a token for them."""
    routes, facts_of = APIRouter(tags=["dashboard"]), FactReader(collector).read
    drawings = RecentDrawings()

    html: dict[int | str, dict[str, Any]] = {
        200: {"content": {"text/html": {"schema": {"type": "string"}}}}
    }

    @routes.get(
        "/",
        response_class=Response,
        summary="Dashboard",
        responses=documented("invalid", "too_many_requests") | html,
    )
    def page(version: AnyVersion = None, states: Number = 0, steps: Number = 0) -> Response:
        """Users, policies, value, budget, forecast, guarantee and health, on one page."""

        def draw() -> str:
            facts = facts_of(version)
            return render(build(facts), facts, Window(version, states, steps))

        drawn = drawings.get((version, states // PAGE_STATES, steps // PAGE_STEPS), draw)
        return HTMLResponse(drawn, headers={"Content-Security-Policy": content_security_policy()})

    @routes.get(
        "/v1/dashboard",
        summary="Dashboard as JSON",
        responses=documented("invalid", "too_many_requests"),
    )
    def data(version: AnyVersion = None) -> dict[str, Any]:
        """What the page says; ``stamp`` changes when it does. ``policy`` is that of ``version``."""
        now = collector.status()  # programs wait for these two, so they are never old
        key = ("json", version, now.accepted, now.version)
        content: dict[str, Any] = drawings.get(key, lambda: build(facts_of(version)).to_json())
        return content

    return routes


KEPT_SECONDS, MOST_DRAWN = 1.0, 10
"""What was drawn is shown again for so long; and so many different drawings are made in that time,
because drawing takes the processor away from uploads."""


class RecentDrawings:
    """Drawings of the last moment. Whoever asks for one more than is made gets 429."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: dict[Any, tuple[float, Any]] = {}

    def get(self, key: Any, draw: Callable[[], Any]) -> Any:
        """The drawing of that name, made now if there is none."""
        with self._lock:
            now = time.monotonic()
            self._made = {k: x for k, x in self._made.items() if now - x[0] < KEPT_SECONDS}
            if key not in self._made:
                if len(self._made) >= MOST_DRAWN:
                    raise ApiError(
                        "too_many_requests",
                        "the dashboard is asked for more than it draws",
                        "ask again in a second",
                        {"Retry-After": "1"},
                    )
                self._made[key] = time.monotonic(), draw()
            return self._made[key][1]


PAGE_STATES, PAGE_STEPS = 30, 24
"""Largest part of an action map that is written out at once; all of it is drawn small."""

MOST_CHOICES = 60
"""Versions offered in the list: the newest of them, and the one that is shown."""

_VALUES = {
    "even": "Estimated value, all starts alike",
    "optimistic": "Value hoped for",
    "played": "Mean return of people",
}
"""What the value is called where it is no estimate of what the newest policy's users get."""

_HEALTH = {"good": "healthy", "waiting": "waiting", "trouble": "needs attention"}


@dataclass(frozen=True)
class Window:
    """Which part of the action map is asked for.

    Attributes:
        version: of the policy, None for the newest.
        states: first state.
        steps: first step, from 0.
    """

    version: int | None = None
    states: int = 0
    steps: int = 0


def _asset(name: str) -> str:
    return resources.files("tacit_service.dashboard").joinpath("assets", name).read_text("utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "whole": words.whole,
        "real": words.real,
        "percent": words.percent,
        "counted": words.counted,
        "at_most": at_most,
        "pace": pace,
    }
    return environment


def content_security_policy() -> str:
    """Nothing but this page's own style and script, known by their hashes."""
    return (
        f"default-src 'none'; style-src '{_hash('style.css')}'; script-src '{_hash('script.js')}'; "
        "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


@cache
def _hash(name: str) -> str:
    digest = hashlib.sha256(_asset(name).encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def pace(users_per_day: float) -> str:
    """Reports per day, or in a smaller unit of time when there are many."""
    if users_per_day >= 86_400:
        return f"{words.real(users_per_day / 86_400)} reports a second"
    if users_per_day >= 2_400:
        return f"{words.real(users_per_day / 24)} reports an hour"
    return f"{words.real(users_per_day)} reports a day"


def render(view: View, facts: Facts, window: Window) -> str:
    """The page as HTML."""
    points = view.value.points
    value_name = _VALUES.get(view.value.kind, "Estimated value")
    d, rule = facts.deployment, facts.deployment.task.rule

    def when(at: float, overdue: str = "") -> Markup:
        """A time in relative words; ``overdue`` replaces them once it lies in the past."""
        text = overdue if overdue and at <= facts.now else words.relative(at, facts.now)
        return Markup('<time data-relative="{}" datetime="{}" title="{}">{}</time>').format(
            overdue, words.iso(at), words.moment(at), text
        )

    template = _environment().from_string(_asset("page.html"))
    return template.render(
        view=view,
        newest=facts.versions[-1],
        value=points[-1] if view.value.supported else None,
        value_name=value_name,
        forecast=outlook_of(facts),
        health_word=_HEALTH[view.health.state],
        moment=words.moment(facts.now),
        period=f"period of {in_words(rule.period)}" if rule is not None and rule.period else "",
        when=when,
        style=Markup(_asset("style.css")),
        script=Markup(_asset("script.js")),
        progress_bar=plots.bar(
            facts.status.accepted / d.task.users,
            f"{facts.status.accepted:,} of {d.task.users:,} reports",
        ),
        budget_bar=plots.bar(
            view.budget.share, f"{words.percent(view.budget.share)} of {view.budget.share_of} used"
        ),
        users_plot=_users_plot(facts) if facts.status.accepted else None,
        value_plot=plots.value_over_users(points, view.value.span, value_name)
        if len(points) > 1
        else None,
        map=None if view.policy is None else _map(view.policy, facts.versions, window),
    )


def _users_plot(facts: Facts) -> Markup:
    points = [(v.published_at, v.users) for v in thinned(facts.versions)]
    now = (max(facts.now, points[-1][0]), facts.status.accepted)
    return plots.users_over_time(points, now, facts.deployment.task.users)


def _map(shown: ActionMap, versions: Sequence[Version], window: Window) -> dict[str, Any]:
    """The part of the action map that is asked for, cell by cell."""
    S, H = len(shown.states), len(shown.table)
    first_state = min(max(window.states, 0), S - 1) // PAGE_STATES * PAGE_STATES
    first_stage = min(max(window.steps, 0), H - 1) // PAGE_STEPS * PAGE_STEPS
    stages = range(first_stage, min(first_stage + PAGE_STEPS, H))
    rows = [
        {"name": shown.states[s], "cells": [_cell(shown, h, s) for h in stages]}
        for s in range(first_state, min(first_state + PAGE_STATES, S))
    ]
    note = ""
    if window.version is not None and window.version != shown.version:
        note = f"There is no version {window.version}; version {shown.version} is shown."
    newest = [v.version for v in versions[-MOST_CHOICES:]]
    whole = S <= PAGE_STATES and H <= PAGE_STEPS
    sentence = f"Action map of {S} states and {H} steps; the table below says the same in letters"
    return {
        "version": shown.version,
        "choices": sorted({*newest, shown.version}, reverse=True),
        "legend": [
            {"letter": mark, "name": name, "colour": plots.colour(a)}
            for a, (mark, name) in enumerate(zip(shown.letters, shown.actions, strict=True))
        ],
        "state_pages": _pages(shown.states, PAGE_STATES),
        "stage_pages": _pages([str(h + 1) for h in range(H)], PAGE_STEPS),
        "first_state": first_state,
        "first_stage": first_stage,
        "stages": stages,
        "rows": rows,
        "note": note,
        "overview": None if whole else plots.overview(shown.table, sentence),
    }


def _cell(shown: ActionMap, h: int, s: int) -> dict[str, str]:
    action = shown.table[h][s]
    share = "" if shown.certainty is None else words.percent(round(shown.certainty[h][s], 2))
    return {
        "letter": shown.letters[action],
        "colour": plots.colour(action),
        "share": share,
        "title": f"{shown.states[s]}, step {h + 1}: {shown.actions[action]}",
    }


def _pages(names: Sequence[str], size: int) -> list[dict[str, Any]]:
    """Stretches of states or steps."""
    return [
        {"first": first, "text": f"{names[first]} to {names[first : first + size][-1]}"}
        for first in range(0, len(names), size)
    ]
