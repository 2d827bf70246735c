"""The tacit command."""
