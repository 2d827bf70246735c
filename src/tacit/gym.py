"""Registers tacit's problems with Gymnasium when it is imported.

Gymnasium reads no entry points, but it imports what stands before a colon:

>>> import gymnasium
>>> gymnasium.make("tacit.gym:tacit/river-swim-v0").unwrapped.problem.name
'river-swim'
"""

from __future__ import annotations

import gymnasium

from tacit.problems.catalogue import problems

for _entry in problems:
    gymnasium.register(
        f"tacit/{_entry.name}-v0",
        entry_point="tacit.problems.gymnasium.export:make_environment",
        kwargs={"problem": _entry.name},
    )
