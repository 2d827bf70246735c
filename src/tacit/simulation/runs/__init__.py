"""Runs: how an agent meets its users, one after the other or many at once."""
