"""One self-contained page about a policy that was learned from a log; made of the release alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tacit.logs.files import read_result
from tacit.logs.offline import NOT_FOR_OTHERS, ReleasedResult
from tacit.policies.tabular import StochasticPolicy, TabularPolicy
from tacit.util.intervals import Interval
from tacit_lab.report.page import rendered, shown_guarantee, write_page
from tacit_lab.report.sections import number

MOST_STATES = 200
"""States of the policy's table that are shown."""

TITLES = {
    "policy": "the policy",
    "behaviour": "what was done before",
    "difference": "the policy above what was done before",
}


def write_log_page(folder: str | Path, path: str | Path | None = None) -> Path:
    """Write the page about a folder that ``tacit offline --out`` wrote, by default into it."""
    target = Path(folder) / "page.html" if path is None else Path(path)
    return write_page(target, render_page(read_result(folder)))


def render_page(result: ReleasedResult) -> str:
    """The page as text."""
    data = result.data
    known = {name: value for name, value in result.values.items() if value is not None}
    levels = {name: value for name, value in known.items() if name != "difference"}
    unit = "episodes" if _by_episode(result) else "people"
    return rendered(
        "log.html",
        name=data["name"],
        agent=result.policy.about["agent"],
        people=f"{result.policy.users:,} {unit}",
        facts=[[key.replace("_", " "), _shown(value)] for key, value in data.items()],
        headlines=_headlines(result),
        bars=_bars(levels),
        values=[
            [TITLES[name], known.get(name, "not told by this release")] for name in result.values
        ],
        whole=f"{100 * result.whole.value:.1f}%",
        by_episode=_by_episode(result),
        policy=_policy(result),
        more=max(0, data["states"] - MOST_STATES),
        **shown_guarantee(result.guarantee),
    )


def _by_episode(result: ReleasedResult) -> bool:
    """Whether nobody knows whose the episodes are, so that each is one of its own."""
    return result.guarantee.unit == "participation"


def _headlines(result: ReleasedResult) -> list[str]:
    """What a reader in a hurry should know."""
    gain, whose = result.values["difference"], "for each person over all their episodes"
    if _by_episode(result):
        whose = "for each episode alone: nothing is promised about a person with several"
    lines = [f"Privacy: {result.guarantee.brief()}, {whose}."]
    if gain is None:
        lines.append(result.withheld)
    elif gain.low > 0.0:
        lines.append(
            "The policy is better than what was done before: the 95% interval of the difference is "
            "above 0."
        )
    elif gain.high < 0.0:
        lines.append("The policy is worse than what was done before: do not use it.")
    else:
        lines.append("It is not shown that the policy is better than what was done before.")
    lines += result.assumes
    if result.guarantee.simulated:
        lines.append(NOT_FOR_OTHERS)
    return lines


def _shown(value: Any) -> str:
    if isinstance(value, list) and isinstance(value[0], str):
        return "; ".join(value)
    if isinstance(value, list):
        return " to ".join(number(float(x)) for x in value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _bars(values: dict[str, Interval]) -> list[dict[str, float | str]]:
    """Intervals as places on an axis from the least to the largest end, in hundredths."""
    if not values:
        return []
    low = min(value.low for value in values.values())
    high = max(value.high for value in values.values())
    room = max(high - low, 1e-9) * 1.1
    at = [(x - low) / room * 90 + 5 for value in values.values() for x in vars(value).values()]
    return [
        {"name": name, "middle": at[3 * i], "low": at[3 * i + 1], "high": at[3 * i + 2]}
        for i, name in enumerate(values)
    ]


def _policy(result: ReleasedResult) -> list[list[str]]:
    """What to do in each state at the first step, and how often that changes later."""
    policy, names = result.policy.policy, result.policy.names
    rows = []
    for s, name in enumerate(names["states"][:MOST_STATES]):
        if isinstance(policy, TabularPolicy):
            action = names["actions"][policy.actions[0, s]]
            changes = int((policy.actions[1:, s] != policy.actions[:-1, s]).sum())
        else:
            assert isinstance(policy, StochasticPolicy)
            first = policy.probabilities[:, s]
            action = names["actions"][first[0].argmax()] + (" mostly" if first[0].max() < 1 else "")
            changes = int((first[1:] != first[:-1]).any(axis=1).sum())
        rows.append([name, action, str(changes)])
    return rows
