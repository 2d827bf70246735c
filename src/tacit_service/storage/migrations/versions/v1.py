"""The first tables, whose statements are in ``tests/service/test_schema.py``."""

from alembic import op

from tacit_service.storage.schema import metadata

revision = "1"
down_revision = None

TABLES = (
    *("learner", "lease", "ledger", "meta", "progress", "publications", "report_ids"),
    *("secrets", "tokens", "uploads"),
)


def upgrade() -> None:
    """Make them; ``schema.py`` has not changed them since."""
    metadata.create_all(op.get_bind(), [metadata.tables[name] for name in TABLES])
