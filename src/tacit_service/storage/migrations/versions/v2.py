"""Tickets: participations that are counted when they begin."""

from alembic import op

from tacit_service.storage.schema import tickets

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Make their table; whoever changes it in ``schema.py`` writes version 3."""
    tickets.create(op.get_bind())
