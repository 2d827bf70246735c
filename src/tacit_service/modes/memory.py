"""What a curator remembers of people: who has taught what in the period that is open.

It is raw data. Every person has one value in the encrypted table, of one size whatever they did, in
the transaction that counts their report and adds it up. Its name holds a pseudonym, made of the
person's token with a key of the period that lies in the same encrypted table: who has the database
alone cannot tell whose it is, and a device cannot choose another self. Key and memory are deleted
when the period is over, and when the task is.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from tacit.statistics.base import LifetimeStatistic, Memory
from tacit_service.responses import ServiceRefused
from tacit_service.storage.vault import Vault

PREFIX = "memory:"
KEY = f"{PREFIX}key"


@dataclass(frozen=True, eq=False, repr=False)
class Remembered:
    """Some people in a row each: their names in the table, and what they have taught."""

    names: list[str]
    memory: Memory


@dataclass(frozen=True, eq=False, repr=False)
class People:
    """Reads and writes the memory of the open period."""

    _vault: Vault
    _statistic: LifetimeStatistic

    def begin(self, connection: sa.Connection) -> None:
        """Forget the period before, and make the key of a new one."""
        self.forget(connection)
        self._vault.put(connection, KEY, secrets.token_bytes(32))

    @staticmethod
    def forget(connection: sa.Connection) -> None:
        """Delete everything that is remembered, for good."""
        Vault.delete_under(connection, PREFIX)

    def pseudonyms(
        self, connection: sa.Connection, period: int, tokens: Sequence[bytes]
    ) -> list[str]:
        """Names of the memories of those who hold these tokens (their digests)."""
        key = self._vault.get(connection, KEY)
        if key is None:
            raise ServiceRefused(
                "the key that people are remembered under is missing from the database"
            )
        made = [hmac.digest(key, b"person:" + token, hashlib.sha256) for token in tokens]
        return [f"{PREFIX}{period}:{one[:16].hex()}" for one in made]

    def recall(self, connection: sa.Connection, names: list[str]) -> Remembered:
        """What these people have taught; who is not known has taught nothing."""
        memory, memory_size = self._statistic.memory(len(names)), self._statistic.memory_size
        known = self._vault.get_many(connection, names)
        for row, name in enumerate(names):
            stored = known.get(name, bytes(8 + memory_size))
            if len(stored) != 8 + memory_size:
                raise ServiceRefused(
                    "what is remembered of people has another form in this database"
                )
            memory.spent[row] = int.from_bytes(stored[:8], "little")
            memory.taught[row] = np.frombuffer(stored, dtype=np.uint8, offset=8)
        return Remembered(names, memory)

    def remember(self, connection: sa.Connection, people: Remembered) -> None:
        """Store it, of everybody who was recalled, changed or not."""
        memory = people.memory
        rows = zip(people.names, memory.spent, memory.taught, strict=True)
        self._vault.put_many(
            connection,
            {
                name: int(spent).to_bytes(8, "little") + taught.tobytes()
                for name, spent, taught in rows
            },
        )
