"""Figures by id."""

from __future__ import annotations

from tacit.errors import UnknownName
from tacit.experiments import linear_jdp, lq_jdp, mixture, tabular_ldp
from tacit.experiments.figure import Figure

figures: tuple[Figure, ...] = (
    *tabular_ldp.FIGURES,
    *mixture.FIGURES,
    *linear_jdp.FIGURES,
    *lq_jdp.FIGURES,
)


def find(name: str) -> Figure:
    """The figure of that id, or an error that suggests the nearest ones."""
    by_id = {figure.id: figure for figure in figures}
    if name not in by_id:
        raise UnknownName("figure", name, by_id)
    return by_id[name]
