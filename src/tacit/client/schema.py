"""The tables of an outbox, version after version."""

from __future__ import annotations

SCHEMA = (
    """
CREATE TABLE joined (
    task_id TEXT PRIMARY KEY, address TEXT NOT NULL, name TEXT NOT NULL, terms BLOB NOT NULL,
    epsilon REAL NOT NULL, delta REAL NOT NULL, newest INTEGER NOT NULL
);
CREATE TABLE episodes (
    task_id TEXT PRIMARY KEY, report_id TEXT NOT NULL, publication TEXT NOT NULL,
    steps TEXT NOT NULL
);
CREATE TABLE reports (
    id TEXT PRIMARY KEY, task_id TEXT NOT NULL, body BLOB, outcome TEXT, reason TEXT, detail TEXT
);
""",
    """
ALTER TABLE joined ADD COLUMN description TEXT;
CREATE TABLE times (
    report_id TEXT PRIMARY KEY, begun REAL NOT NULL, ends REAL NOT NULL, due REAL NOT NULL,
    behind REAL
);
""",
    """
CREATE TABLE answers (
    task_id TEXT NOT NULL, report_id TEXT PRIMARY KEY, publication TEXT NOT NULL,
    answer TEXT NOT NULL
);
""",
    """
ALTER TABLE episodes ADD COLUMN number INTEGER;
ALTER TABLE answers ADD COLUMN number INTEGER;
""",
    """
ALTER TABLE episodes ADD COLUMN period INTEGER;
ALTER TABLE episodes ADD COLUMN silent TEXT;
ALTER TABLE answers ADD COLUMN period INTEGER;
ALTER TABLE answers ADD COLUMN silent TEXT;
CREATE TABLE periods (
    task_id TEXT NOT NULL, period INTEGER NOT NULL, begun INTEGER NOT NULL,
    reported INTEGER NOT NULL, PRIMARY KEY (task_id, period)
);
""",
)
"""What each version added; a file is brought to the newest one when it is opened."""

VERSION = len(SCHEMA)
