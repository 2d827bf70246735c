"""Local randomizers: the noise is added on the user's device, and nobody is trusted."""

from tacit.privacy.local.additive import (
    LocalAdditive,
    bounded_scales,
    gaussian_scales,
    laplace_scales,
    proportional_radii,
)
from tacit.privacy.local.drawn_cell import DrawnCell
from tacit.privacy.local.one_cell import OneCell
from tacit.privacy.local.response import LocalResponse, differing_bits, response_bits
from tacit.privacy.local.shaped import LocalShaped, shaped_std

__all__ = [
    "DrawnCell",
    "LocalAdditive",
    "LocalResponse",
    "LocalShaped",
    "OneCell",
    "bounded_scales",
    "differing_bits",
    "gaussian_scales",
    "laplace_scales",
    "proportional_radii",
    "response_bits",
    "shaped_std",
]
