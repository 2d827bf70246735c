"""Local randomizers: the noise is added on the user's device, and nobody is trusted."""

from tacit.privacy.local.additive import LocalAdditive, gaussian_scales, laplace_scales
from tacit.privacy.local.one_cell import OneCell

__all__ = ["LocalAdditive", "OneCell", "gaussian_scales", "laplace_scales"]
