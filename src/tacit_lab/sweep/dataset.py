"""The results of a sweep on disk, read back as tidy frames.

``curves.parquet`` (and the same as ``curves.csv``) has one row per configuration, seed and
checkpoint, ``runs.parquet`` the last of these rows of every run, ``manifest.json`` says what each
configuration is and guarantees. Any of DuckDB, pandas and polars reads the tables; this module adds
nothing to them but the manifest.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidInput
from tacit.util.files import read_json

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
"""Version of the folder's layout; unknown ones are refused."""

CURVES, CSV, RUNS, TIMINGS = "curves.parquet", "curves.csv", "runs.parquet", "timings.parquet"
MANIFEST, SPEC, TASKS = "manifest.json", "sweep.toml", "tasks"


@dataclass(frozen=True, eq=False)
class Sweep:
    """A finished sweep.

    Attributes:
        folder: where it lies.
        manifest: versions, machines, seeds, and ``configurations``: of each its number, label,
            problem (as described), agent, episodes, finished seeds, guarantee, who came back and
            when (``returning``, of its first seed; the table has the days of all), and how a
            parameter was chosen; ``failures`` lists the tasks that did not finish.
    """

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def configurations(self) -> list[dict[str, Any]]:
        """What was run, in the order of the spec; number i is ``configuration == i``."""
        found: list[dict[str, Any]] = self.manifest["configurations"]
        return found

    @property
    def settings(self) -> list[str]:
        """The columns that say which configuration a row belongs to.

        These are: configuration, label, problem, agent, model, epsilon and delta as asked for,
        calibration, true_epsilon, true_delta, episodes (the K that was asked for), then one
        column ``problem_x`` or ``agent_x`` for every parameter x that the spec sets, and what it
        says of people who come back (participations, teaches and so on).
        """
        names: list[str] = self.manifest["settings"]
        return names

    @functools.cached_property
    def curves(self) -> pd.DataFrame:
        """The settings, then seed, episode, regret and reward (both cumulative).

        And the day, where people come back in some configuration.
        """
        return self._read(CURVES)

    @functools.cached_property
    def runs(self) -> pd.DataFrame:
        """The last row of every run."""
        return self._read(RUNS)

    @functools.cached_property
    def timings(self) -> pd.DataFrame:
        """Seconds of every run: the only table that differs between two equal sweeps."""
        return self._read(TIMINGS)

    def _read(self, name: str) -> pd.DataFrame:
        import pandas as pd

        return pd.read_parquet(self.folder / name)


def load(folder: str | Path) -> Sweep:
    """Read the folder of a sweep."""
    path = Path(folder)
    missing = (
        f"{path} holds no finished sweep: it has no {MANIFEST} (tacit sweep writes it at the "
        "end; --resume goes on with an interrupted one)"
    )
    manifest = read_json(path / MANIFEST, missing)
    if manifest.get("format") != FORMAT or "configurations" not in manifest:
        raise InvalidInput(f"{path} holds something else than a sweep of format {FORMAT}")
    return Sweep(path, manifest)
