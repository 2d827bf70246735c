"""The commands of whoever operates a service."""
