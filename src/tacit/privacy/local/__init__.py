"""Local randomizers: the noise is added on the user's device, and nobody is trusted."""

from tacit.privacy.local.additive import (
    LocalAdditive,
    bounded_scales,
    gaussian_scales,
    laplace_scales,
    proportional_radii,
)
from tacit.privacy.local.one_cell import DrawnCell, OneCell
from tacit.privacy.local.response import LocalResponse, differing_bits, response_bits

__all__ = [
    "DrawnCell",
    "LocalAdditive",
    "LocalResponse",
    "OneCell",
    "bounded_scales",
    "differing_bits",
    "gaussian_scales",
    "laplace_scales",
    "proportional_radii",
    "response_bits",
]
