"""Schema migrations of the service, run by alembic when a database is opened."""
