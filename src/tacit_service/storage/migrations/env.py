"""How alembic runs here: on the connection that the service opened, in its transaction."""

from alembic import context

from tacit_service.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
