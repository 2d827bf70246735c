"""Shared by the tests of the figures."""
