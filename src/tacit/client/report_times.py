"""When an episode ends and when its report is due, on a clock that may be wrong.

Both moments are fixed before the first step. A device compares them with its clock and with nothing
else, so whatever the clock does, it does to those who stop early and to those who do not alike.

- Set back, and put right again: nothing changes, since the moments are kept, not counted down.
- Set back and not put right: to after the beginning, everything comes later by as much; to before
  it, time is counted anew from the first look at such a clock, until it shows the beginning again.
  So one such accident makes nothing wait for more than three times as long as was meant.
- Set forward: that cannot be told from time that passed while the app was closed. Everything comes
  earlier by as much, unless the clock is put right before the moment.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Moments of one episode, in unix time of the device.

    Attributes:
        begun: when the episode began.
        ends: when the episode is over at the latest.
        due: before this its report is not sent.
        behind: the first look at a clock that stood before ``begun``; None if it does not.
    """

    begun: float
    ends: float
    due: float
    behind: float | None = None

    @classmethod
    def drawn(cls, begun: float, duration: float, delay: float) -> Times:
        """Of an episode that begins: the delay is uniform in [0, delay], from the OS's entropy."""
        ends = begun + duration
        return cls(begun, ends, ends + delay * (secrets.randbits(53) / 2**53))

    def at(self, moment: float, now: float) -> float:
        """What the clock shows when a moment comes, given what it shows now."""
        if now >= self.begun:
            return moment
        anew = (now if self.behind is None else self.behind) + moment - self.begun
        return anew if anew < self.begun else moment

    def over(self, now: float) -> bool:
        """Whether the episode's time is over."""
        return now >= self.at(self.ends, now)

    def held(self, now: float) -> bool:
        """Whether its report must still wait."""
        return now < self.at(self.due, now)
