"""Experiments on "Adaptive Control of Differentially Private Linear Quadratic Systems".

The paper has none; these are the benchmarks of spec lq_jdp, section 6.
"""

from tacit.experiments.lq_jdp.certificate import CERTIFICATE
from tacit.experiments.lq_jdp.learners import LEARNERS
from tacit.experiments.lq_jdp.optimism import OPTIMISM

FIGURES = (OPTIMISM, LEARNERS, CERTIFICATE)

__all__ = ["FIGURES"]
