"""Local randomizers: the noise is added on the user's device, and nobody is trusted."""

from tacit.privacy.local.additive import LocalAdditive, gaussian_scales, laplace_scales

__all__ = ["LocalAdditive", "gaussian_scales", "laplace_scales"]
