"""What a deployment keeps: database, ledger, vault, witness, and copies of them."""

from tacit.errors import need

need("the service", "service")
