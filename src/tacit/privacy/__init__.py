"""The wall: noise, accounting, and the only writer of releases."""

from tacit.privacy.base import Privatizer, Query, Report, Secret
from tacit.privacy.exact import Exact
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.noise import Noise, Silence

__all__ = ["Exact", "Guarantee", "Noise", "Privatizer", "Query", "Report", "Secret", "Silence"]
