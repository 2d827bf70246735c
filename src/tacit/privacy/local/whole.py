"""What reports that travel as they are share: the message is what the collector adds up."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from tacit.arrays import IntArray
from tacit.kernels import sums
from tacit.privacy.base import Report, Secret, TwoHalves, inspect_entries
from tacit.privacy.noise import Noise, Source, weakest
from tacit.publication import Publication


class WholeReport(TwoHalves):
    """The collector's half of a randomizer of the whole contribution: inspect, then add up."""

    @abstractmethod
    def randomize(self, contribution: IntArray, publication: Publication, noise: Noise) -> IntArray:
        """On the device: everything that is sent."""

    @abstractmethod
    def reach(self, publication: Publication) -> IntArray:
        """Largest size of every entry of an honest message, but for chances below 1e-27."""

    def encode(self, contribution: IntArray, publication: Publication, noise: Noise) -> Report:
        """The device's half; the collector's leaves the message as it is."""
        message = self.randomize(contribution, publication, noise)
        return self.report(message, publication, noise.source)

    def report(self, message: IntArray, publication: Publication, source: Source) -> Report:
        """The message as it is absorbed."""
        return Report(message, source)

    def inspect(self, message: IntArray, publication: Publication, coin: int) -> None:
        """Refuse a message of another length, or with an entry out of reach."""
        inspect_entries(message, self.reach(publication))

    def inspect_all(
        self, messages: Sequence[IntArray], publication: Publication, coins: Sequence[int]
    ) -> None:
        """One after the other."""
        for message, coin in zip(messages, coins, strict=True):
            self.inspect(message, publication, coin)

    def collect(
        self, message: IntArray, publication: Publication, coin: int, source: Source = "secure"
    ) -> Report:
        """At the collector: the inspected message."""
        self.inspect(message, publication, coin)
        return self.report(message, publication, source)

    def fold(
        self,
        secret: Secret,
        messages: Sequence[IntArray],
        publication: Publication,
        coins: Sequence[int],
        source: Source = "secure",
    ) -> Secret:
        """Collect and absorb one after the other: each is one addition of vectors."""
        for message, coin in zip(messages, coins, strict=True):
            report = self.collect(message, publication, coin, source)
            secret = self.absorb(secret, report, publication.version)
        return secret

    def absorb(self, secret: Secret, report: Report, version: int) -> Secret:
        """Add up what is already randomized."""
        sums.absorb(secret.sums, report.take())
        secret.users += 1
        secret.source = weakest(secret.source, report.source)
        return secret
