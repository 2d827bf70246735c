"""The encrypted table: exact sums, counter state and noise that was drawn and not yet published.

AES-256-GCM with a fresh nonce per value; the task and the value's name are authenticated along, so
that no value can stand in for another. The key file lists keys, one per line in base64: the first
encrypts, all of them decrypt. To rotate, put a new line on top; drop the old one when the task is
over. The file lies outside the database, and only its owner may read it.

Two more things are made of the keys, for the witness: a digest of exact content that nobody can
test guesses against who lacks the key file, and a seal that opens for the same content alone.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tacit.errors import RawDataLeak
from tacit_service.responses import ServiceRefused
from tacit_service.storage import database as db
from tacit_service.storage import schema

NONCE = 12
_PUT = sa.text(
    "INSERT INTO secrets (name, data) VALUES (:name, :data) "
    "ON CONFLICT (name) DO UPDATE SET data = excluded.data"
)


class Vault:
    """Reads and writes the encrypted table. Never printed, never pickled.

    Args:
        path: the key file.
        task_id: values of another task do not open.
    """

    __slots__ = ("_keys", "_name", "_raw", "_task")

    def __init__(self, path: Path, task_id: str) -> None:
        self._raw = _read_keys(path)
        self._keys = [AESGCM(key) for key in self._raw]
        self._name = path.name
        self._task = task_id

    @staticmethod
    def create(path: Path) -> None:
        """A new key file that only its owner may read; an existing one is left as it is."""
        with contextlib.suppress(FileExistsError):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(base64.b64encode(secrets.token_bytes(32)) + b"\n")
                file.flush()
                os.fsync(file.fileno())

    def __repr__(self) -> str:
        return "Vault(content hidden)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise RawDataLeak("a Vault holds keys and cannot be pickled or copied")

    def _bound(self, name: str) -> bytes:
        return f"{self._task}:{name}".encode()

    def seal(self, name: str, data: bytes) -> bytes:
        """Encrypted bytes of a named value."""
        nonce = secrets.token_bytes(NONCE)
        return nonce + self._keys[0].encrypt(nonce, data, self._bound(name))

    def unseal(self, name: str, sealed: bytes) -> bytes:
        """The value again, or a refusal if no listed key made it."""
        for key in self._keys:
            with contextlib.suppress(InvalidTag):
                return key.decrypt(sealed[:NONCE], sealed[NONCE:], self._bound(name))
        raise ServiceRefused(
            f"the encrypted table does not open with the keys in {self._name}: put back the key "
            "file that belongs to this database, with all its lines"
        )

    def digest(self, name: str, content: bytes) -> str:
        """A keyed digest of exact content."""
        return self._made(self._raw[0], "digest", name, content).hex()

    def seal_for(self, name: str, content: bytes, data: bytes) -> bytes:
        """A value encrypted so that only who has a key and the same content can open it."""
        nonce = secrets.token_bytes(NONCE)
        key = AESGCM(self._made(self._raw[0], "seal", name, content))
        return nonce + key.encrypt(nonce, data, self._bound(name))

    def open_for(self, name: str, content: bytes, sealed: bytes) -> bytes | None:
        """The value again; None if it was sealed for other content."""
        for raw in self._raw:
            with contextlib.suppress(InvalidTag):
                key = AESGCM(self._made(raw, "seal", name, content))
                return key.decrypt(sealed[:NONCE], sealed[NONCE:], self._bound(name))
        return None

    def _made(self, raw: bytes, use: str, name: str, content: bytes) -> bytes:
        """32 bytes that follow from a key, their use and some content."""
        return hmac.digest(raw, self._bound(f"{use}:{name}:") + content, hashlib.sha256)

    def get(self, connection: sa.Connection, name: str) -> bytes | None:
        """A stored value, None if there is none; likewise locked."""
        return self.get_many(connection, [name]).get(name)

    def put(self, connection: sa.Connection, name: str, data: bytes) -> None:
        """Store a value in place of an older one."""
        connection.execute(_PUT, {"name": name, "data": self.seal(name, data)})

    def get_many(self, connection: sa.Connection, names: Sequence[str]) -> dict[str, bytes]:
        """Those of some values that are stored; locked until the transaction ends."""
        column, values = schema.secrets.c, {}
        for some in db.among(column.name, names):
            wanted = sa.select(column.name, column.data).where(some).with_for_update()
            for name, sealed in connection.execute(wanted):
                values[name] = self.unseal(name, bytes(sealed))
        return values

    def put_many(self, connection: sa.Connection, values: Mapping[str, bytes]) -> None:
        """Store many values in place of older ones."""
        rows = [{"name": name, "data": self.seal(name, data)} for name, data in values.items()]
        connection.execute(_PUT, rows)

    @staticmethod
    def delete(connection: sa.Connection, *names: str) -> None:
        """Forget values for good."""
        for some in db.among(schema.secrets.c.name, names):
            connection.execute(schema.secrets.delete().where(some))

    @staticmethod
    def delete_under(connection: sa.Connection, prefix: str) -> int:
        """Forget all values whose names begin so, for good; how many there were."""
        begins = schema.secrets.c.name.startswith(prefix, autoescape=True)
        return connection.execute(schema.secrets.delete().where(begins)).rowcount

    @staticmethod
    def names(connection: sa.Connection, prefix: str = "", most: int | None = None) -> list[str]:
        """Of what is stored under names that begin so, in their order."""
        column = schema.secrets.c.name
        wanted = sa.select(column).where(column.startswith(prefix, autoescape=True))
        return list(connection.execute(wanted.order_by(column).limit(most)).scalars())


def _read_keys(path: Path) -> list[bytes]:
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise ServiceRefused(
            f"the key file {path.name} is missing or cannot be read; without it nothing secret in "
            "the database can be used: put it back"
        ) from None
    if mode & 0o077:
        raise ServiceRefused(
            f"others can read the key file {path.name}; run: chmod 600 {path.name}"
        )
    try:
        keys = [base64.b64decode(line, validate=True) for line in text.split()]
    except binascii.Error:
        keys = []
    if not keys or any(len(key) != 32 for key in keys):
        raise ServiceRefused(
            f"the key file {path.name} must list keys of 32 bytes in base64, one per line; put "
            "back the one that was made with the database"
        )
    return keys
