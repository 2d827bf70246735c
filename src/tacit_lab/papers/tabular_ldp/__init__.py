"""Figures of "Local Differential Privacy for Regret Minimization in Reinforcement Learning"."""

from tacit_lab.papers.tabular_ldp import regret
from tacit_lab.papers.tabular_ldp.lower_bound import LOWER_BOUND
from tacit_lab.papers.tabular_ldp.reports import FIGURE_8, FIGURE_9
from tacit_lab.papers.tabular_ldp.table_1 import TABLE_1

FIGURES = (
    *(regret.FIGURE_1, regret.FIGURE_2, regret.FIGURE_4, regret.FIGURE_5, regret.FIGURE_6),
    *(regret.FIGURE_7, FIGURE_8, FIGURE_9, TABLE_1, LOWER_BOUND),
)
