"""Joint privacy: a trusted curator adds noise to running sums before it publishes them."""

from tacit.privacy.joint.counted import CountedSums, counted_noise_std

__all__ = ["CountedSums", "counted_noise_std"]
