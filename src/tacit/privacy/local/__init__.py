"""Local randomizers: the noise is added on the user's device, and nobody is trusted."""

from tacit.privacy.local.additive import LocalAdditive, least_scales, proportional_radii
from tacit.privacy.local.cells import CellLaw
from tacit.privacy.local.one_cell import DrawnCell, OneCell
from tacit.privacy.local.response import LocalResponse, differing_bits, response_bits
from tacit.privacy.local.shaped import LocalShaped

__all__ = [
    "CellLaw",
    "DrawnCell",
    "LocalAdditive",
    "LocalResponse",
    "LocalShaped",
    "OneCell",
    "differing_bits",
    "least_scales",
    "proportional_radii",
    "response_bits",
]
