"""Figures of the papers and comparisons: what is run, how it is scored, which claims must hold."""
