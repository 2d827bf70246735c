"""Experiments with tacit: sweeps, reports, the papers' figures, comparisons, case studies."""
