"""Noise at a trusted curator: running sums through a counter, or sums of separate batches."""

from tacit.privacy.joint.batched import BatchSums, GaussianLaw
from tacit.privacy.joint.counted import CountedSecret, CountedSums, counted_noise_std

__all__ = ["BatchSums", "CountedSecret", "CountedSums", "GaussianLaw", "counted_noise_std"]
