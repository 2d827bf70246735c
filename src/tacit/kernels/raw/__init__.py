"""Compiled formulas that see raw data: behind the wall."""
