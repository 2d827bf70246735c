"""Figures of "Local Differential Privacy for Regret Minimization in Reinforcement Learning"."""

from tacit_lab.papers.tabular_ldp.lower_bound import LOWER_BOUND
from tacit_lab.papers.tabular_ldp.randomizers import FIGURE_2, FIGURE_4, FIGURE_5, FIGURE_6
from tacit_lab.papers.tabular_ldp.regret import FIGURE_1, FIGURE_7
from tacit_lab.papers.tabular_ldp.reports import FIGURE_8, FIGURE_9
from tacit_lab.papers.tabular_ldp.table_1 import TABLE_1

FIGURES = (
    *(FIGURE_1, FIGURE_2, FIGURE_4, FIGURE_5, FIGURE_6),
    *(FIGURE_7, FIGURE_8, FIGURE_9, TABLE_1, LOWER_BOUND),
)
