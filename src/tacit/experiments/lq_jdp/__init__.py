"""Experiments on "Adaptive Control of Differentially Private Linear Quadratic Systems".

The paper has none; these are the benchmarks of docs/papers/lq_jdp.md#systems.
"""

from tacit.experiments.lq_jdp.certificate import CERTIFICATE
from tacit.experiments.lq_jdp.learners import LEARNERS
from tacit.experiments.lq_jdp.optimism import OPTIMISM

FIGURES = (OPTIMISM, LEARNERS, CERTIFICATE)

__all__ = ["FIGURES"]
