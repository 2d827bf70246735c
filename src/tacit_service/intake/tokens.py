"""Bearer tokens: shown once, stored as hashes, counted per device where the unit is a user."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import sqlalchemy as sa

from tacit.errors import InvalidInput
from tacit.validate import choice, integer
from tacit_service.responses import Role, Token
from tacit_service.storage import schema
from tacit_service.storage.database import Store

_PUBLIC = ("id", "role", "label", "issued_at", "revoked_at", "used")
_COLUMNS = [schema.tokens.c[name] for name in _PUBLIC]


def digest(bearer: str) -> bytes:
    """What is stored of a token: 32 random bytes need no salt."""
    return hashlib.sha256(bearer.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True)
class Tokens:
    """Issues, recognises and revokes tokens.

    Attributes:
        seat: makes of a device's token what its ids are made of; None where senders choose ids.
    """

    _store: Store
    _clock: Callable[[], float]
    seat: Callable[[str], bytes] | None = None

    def issue(self, role: Role, count: int = 1, label: str = "") -> list[str]:
        """New tokens. They are returned here and never again."""
        choice(role, "role", get_args(Role))
        count = integer(count, "count", low=1, high=1_000_000)
        if not isinstance(label, str) or len(label) > 200:
            raise InvalidInput("a label has at most 200 characters")
        made = [secrets.token_urlsafe(32) for _ in range(count)]
        now = self._clock()
        rows = [
            {"digest": digest(t), "role": role, "label": label, "issued_at": now, "used": 0}
            for t in made
        ]
        with self._store.write() as connection:
            connection.execute(schema.tokens.insert(), rows)
        return made

    def authenticate(self, bearer: str) -> Token | None:
        """Whose token it is; None if nobody's, or no longer."""
        wanted = digest(bearer)
        column = schema.tokens.c.digest
        with self._store.read() as connection:
            row = connection.execute(
                sa.select(column, *_COLUMNS).where(column == wanted)
            ).one_or_none()
        if row is None or not hmac.compare_digest(bytes(row[0]), wanted):
            return None
        seat = None if self.seat is None or row.role != "device" else self.seat(bearer)
        token = dataclasses.replace(Token(*row[1:]), seat=seat, digest=wanted)
        return token if token.revoked_at is None else None

    def revoke(self, token: int) -> bool:
        """Refuse a token from now on; False if there is none of that number."""
        column = schema.tokens.c
        revoked_at = sa.func.coalesce(column.revoked_at, self._clock())
        change = schema.tokens.update().where(column.id == token).values(revoked_at=revoked_at)
        with self._store.write() as connection:
            return bool(connection.execute(change).rowcount)

    def list(self) -> list[Token]:
        """All of them, without what would let anybody in."""
        with self._store.read() as connection:
            rows = connection.execute(sa.select(*_COLUMNS).order_by(schema.tokens.c.id)).all()
        return [Token(*row) for row in rows]
