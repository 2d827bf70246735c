"""Noise at a trusted curator: running sums through a counter, or sums of separate batches."""

from tacit.privacy.joint.batched import BatchSums, batch_noise_std
from tacit.privacy.joint.counted import CountedSums, counted_noise_std

__all__ = ["BatchSums", "CountedSums", "batch_noise_std", "counted_noise_std"]
