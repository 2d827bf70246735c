"""``tacit tokens``: issue, list and revoke the tokens of a deployment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.values import whole
from tacit.errors import InvalidInput
from tacit.validate import choice, integer

if TYPE_CHECKING:
    from tacit.service.answers import Role
    from tacit.service.collector import Collector

ACTIONS = ("issue", "list", "revoke")
MOST = 1_000_000
"""Tokens in one call."""


@dataclass(frozen=True)
class TokenOptions:
    """What was asked for on the command line."""

    number: str | None
    role: str
    count: str
    label: str
    out: Path | None
    as_json: bool


def manage(path: Path, action: str, options: TokenOptions) -> None:
    """Do one of the three on the deployment's database; a running service notices at once."""
    choice(action, "the action", ACTIONS)
    from tacit.service.collector import Collector
    from tacit.service.deployment import Deployment

    collector = Collector.open(Deployment.load(path))
    try:
        {"issue": _issue, "list": _list, "revoke": _revoke}[action](collector, options)
    finally:
        collector.close()


def _issue(collector: Collector, options: TokenOptions) -> None:
    role: Role = choice(options.role, "--role", ("device", "operator"))  # type: ignore[assignment]
    count = integer(whole(options.count, "--count"), "--count", low=1, high=MOST)
    if options.out is None:
        issued = collector.tokens.issue(role, count, options.label)
        print(
            json.dumps({"role": role, "tokens": issued}) if options.as_json else "\n".join(issued)
        )
        return
    try:  # before anything is issued, and readable by its owner alone
        file = os.fdopen(os.open(options.out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w")
    except FileExistsError:
        raise InvalidInput(f"{options.out} is there already; choose another name") from None
    with file:
        issued = collector.tokens.issue(role, count, options.label)
        file.writelines(f"{token}\n" for token in issued)
    wrote = {"role": role, "count": count, "file": str(options.out)}
    print(json.dumps(wrote) if options.as_json else f"wrote {count:,} tokens to {options.out}")


def _list(collector: Collector, options: TokenOptions) -> None:
    known = collector.tokens.list()
    if options.as_json:
        print(json.dumps({"tokens": [asdict(token) for token in known]}))
        return
    for token in known:
        state = f"{token.used:,} reports" if token.revoked_at is None else "revoked"
        print(f"{token.id:>8}  {token.role:<8}  {state:<12}  {token.label}".rstrip())


def _revoke(collector: Collector, options: TokenOptions) -> None:
    if options.number is None:
        raise InvalidInput("say which token: tacit tokens FILE revoke NUMBER (see list)")
    number = integer(whole(options.number, "NUMBER"), "NUMBER", low=0, high=2**31 - 1)
    if not collector.tokens.revoke(number):
        raise InvalidInput(f"there is no token {number}; see: tacit tokens FILE list")
    print(json.dumps({"revoked": number}) if options.as_json else f"token {number} is revoked")
