"""The first tables: those of ``schema.py`` as it is.

Whoever changes ``schema.py`` writes version 2, and first copies the statements that version 1 was
made with from ``tests/service/test_schema.py``, which holds them, to this place.
"""

from alembic import op

from tacit.service.schema import metadata

revision = "1"
down_revision = None


def upgrade() -> None:
    """Make them."""
    metadata.create_all(op.get_bind())
