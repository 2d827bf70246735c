"""Results on disk: a parquet table of curves and JSON beside it."""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from tacit._version import __version__
from tacit.errors import InvalidInput
from tacit.folders import make_folder
from tacit.privacy.guarantee import Guarantee
from tacit.simulation.result import Result

FORMAT = 1
"""Version of the folder's layout; unknown ones are refused."""

CURVES, MANIFEST, RESULT = "curves.parquet", "manifest.json", "result.json"


def prepare(folder: Path, *, overwrite: bool) -> None:
    """Make a folder ready for a result; refuse one that cannot be written or already holds one."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file, but results need a folder")
    if (folder / MANIFEST).exists() and not overwrite:
        raise InvalidInput(
            f"{folder} already holds a result; choose another folder, or overwrite it on purpose "
            "(--overwrite, overwrite=True)"
        )
    make_folder(folder)


def save(result: Result, folder: Path, *, overwrite: bool = False) -> Path:
    """Write the result; each file appears complete or not at all, the manifest last."""
    prepare(folder, overwrite=overwrite)
    unfinished = folder / (CURVES + ".part")
    result.frame().to_parquet(unfinished, index=False)
    unfinished.replace(folder / CURVES)
    write_json(folder / RESULT, result.to_json())
    write_json(folder / MANIFEST, _manifest(result))
    return folder


def load(folder: Path) -> Result:
    """Read a saved result back."""
    import pandas as pd

    try:
        manifest = json.loads((folder / MANIFEST).read_text())
    except FileNotFoundError:
        raise InvalidInput(f"{folder} holds no result: it has no {MANIFEST}") from None
    except ValueError as error:
        raise InvalidInput(f"{folder / MANIFEST} is not valid JSON: {error}") from None
    if manifest.get("format") != FORMAT:
        raise InvalidInput(
            f"{folder} has format {manifest.get('format')!r}, but this version reads {FORMAT}"
        )
    frame = pd.read_parquet(folder / CURVES)
    seeds = tuple(int(seed) for seed in manifest["seeds"])
    shape = (len(seeds), -1)
    points = len(frame) // len(seeds)
    return Result(
        problem=manifest["problem"],
        agent=manifest["agent"],
        guarantee=Guarantee.from_json(manifest["guarantee"]),
        seed=manifest["seed"],
        seeds=seeds,
        requested_episodes=manifest["requested_episodes"],
        episodes=frame["episode"].to_numpy(dtype=np.int64)[:points],
        regret=frame["regret"].to_numpy(dtype=np.float64).reshape(shape),
        reward=frame["reward"].to_numpy(dtype=np.float64).reshape(shape),
        interrupted=manifest["interrupted"],
        seconds=manifest["timing"]["seconds"],
        episodes_per_second=manifest["timing"]["episodes_per_second"],
    )


def _manifest(result: Result) -> dict[str, Any]:
    report = result.to_json()
    kept = (
        "problem",
        "agent",
        "episodes",
        "requested_episodes",
        "interrupted",
        "seed",
        "seeds",
        "guarantee",
        "timing",
    )
    return {
        "format": FORMAT,
        "tacit": __version__,
        **{key: report[key] for key in kept},
        "guarantee_digest": result.guarantee.digest(),
        **made_with(),
    }


def made_with() -> dict[str, Any]:
    """Versions and machine, for manifests."""
    return {
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("numpy", "numba", "scipy")},
        },
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        },
    }


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a JSON file that appears complete or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(data, indent=2) + "\n")
    part.replace(path)
