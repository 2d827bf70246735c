"""``--resume``: what a run was begun with is kept beside its progress, and read from there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from tacit.errors import InvalidInput

PROGRESS, COMMAND = "progress", "command.json"
"""In the folder of the result, as long as it is not complete."""


def begin(folder: Path, chosen: Mapping[str, Any], *, overwrite: bool) -> None:
    """Make the folder ready for a new run, and note what it is begun with.

    A result or an unfinished run that is there is not lost by mistake.
    """
    from tacit.simulation.result import prepare
    from tacit.simulation.resume import forget
    from tacit.util.files import make_folder, write_json

    progress = folder / PROGRESS
    if progress.exists() and not overwrite:
        raise InvalidInput(
            f"{folder} holds an unfinished run: go on with tacit {_command(chosen)} --resume "
            f"{folder}, or begin anew with --overwrite"
        )
    prepare(folder, overwrite=overwrite)
    forget(progress)
    make_folder(progress)
    write_json(progress / COMMAND, chosen)


def recalled(folder: Path, chosen: Mapping[str, Any], context: typer.Context) -> dict[str, Any]:
    """What the run in a folder was begun with; what is typed besides must say the same.

    Options that there were not when it was begun are as they are by default.
    """
    from tacit.util.files import read_json

    saved = read_json(
        folder / PROGRESS / COMMAND,
        f"{folder} holds no unfinished run: --resume goes on with what {_command(chosen)} --out "
        "DIR began and did not finish",
    )
    if _command(saved) != _command(chosen):
        raise InvalidInput(f"{folder}: go on with tacit {_command(saved)} --resume {folder}")
    for name, value in chosen.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE" and saved.get(name) != value:
            raise InvalidInput(
                f"{folder} holds a run that was begun with {name} = {saved.get(name)!r}, not "
                f"{value!r}: leave it out to go on, or begin another run with --out"
            )
    return {name: saved.get(name, value) for name, value in chosen.items()}


def _command(chosen: Mapping[str, Any]) -> str:
    """Which command a run belongs to."""
    return str(chosen.get("command", "run"))
