"""The wall: noise, accounting, and the only writer of releases."""

from tacit.privacy.base import Privatizer, Query, Report, Secret
from tacit.privacy.exact import Exact
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import GridLaw, Noise, SecureNoise, SimulatedNoise, ZeroNoise

__all__ = [
    "Exact",
    "GridLaw",
    "Guarantee",
    "Noise",
    "Privatizer",
    "Query",
    "Report",
    "Secret",
    "SecureNoise",
    "ZeroNoise",
    "SimulatedNoise",
]
