"""What a deployment keeps: database, ledger, vault, witness, and copies of them."""
