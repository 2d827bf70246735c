"""The deployment file: what an operator writes, and what is made of it."""

from tacit.errors import need

need("the service", "service")
