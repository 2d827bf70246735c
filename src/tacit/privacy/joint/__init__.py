"""Noise at a trusted curator: running sums through a counter, or sums of separate batches."""
