"""Fused loops: speed only, equal to the driver; may be skipped by a reader."""
