"""Local randomizers: the noise is added on the user's device, and nobody is trusted."""

from tacit.privacy.local.additive import LocalAdditive, gaussian_scales, laplace_scales
from tacit.privacy.local.one_cell import OneCell
from tacit.privacy.local.shaped import LocalShaped, shaped_std

__all__ = [
    "LocalAdditive",
    "LocalShaped",
    "OneCell",
    "gaussian_scales",
    "laplace_scales",
    "shaped_std",
]
