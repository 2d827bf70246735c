"""``tacit task`` (pause, resume, close), ``tacit backup`` and ``tacit erase``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import DeploymentFile, Json, one_of
from tacit.errors import InvalidInput

ACTIONS = {"pause": "paused", "resume": "open", "close": "closed"}


def task(
    deployment: DeploymentFile,
    action: Annotated[
        str,
        typer.Argument(metavar="ACTION", parser=one_of(*ACTIONS), help="pause, resume or close"),
    ],
    yes: Annotated[
        bool, typer.Option("--yes", help="Needed to close: a closed task stays closed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Pause a task, let it go on, or close it for good. A running service follows at once.

    While it is paused devices keep their reports, nothing is planned, and no report becomes too
    old. A closed task takes no report; its policies stay up.

    Example: tacit task coach.toml pause
    """
    from tacit_service.collector import Collector
    from tacit_service.config.deployment import Deployment
    from tacit_service.intake.task_state import SAID, WORDS

    if action == "close" and not yes:
        raise InvalidInput("a closed task cannot be opened again; if you mean it, add --yes")
    with Collector.open(Deployment.load(deployment)) as collector:
        (word,) = (word for word in WORDS if word == ACTIONS[action])
        state = collector.turn(word)
    print(json.dumps({"state": state.word}) if as_json else SAID[state.word])


def erase(
    deployment: DeploymentFile,
    what: Annotated[
        str, typer.Argument(metavar="WHAT", parser=one_of("kept", "all"), help="kept or all")
    ],
    yes: Annotated[
        bool, typer.Option("--yes", help="Needed for all: it ends the task for good.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Erase what can still be erased of people's data, and say what cannot.

    kept: reports that were absorbed and kept for --verify; learning goes on. all: also what waits
    and what adds up, and the key file; the task is over, and what was published stays published.
    One person's report cannot be taken out of sums. Stop the service first.

    Example: tacit erase coach.toml kept
    """
    from tacit_service.collector import Collector
    from tacit_service.config.deployment import Deployment
    from tacit_service.storage import erase as erasing

    if what == "all" and not yes:
        raise InvalidInput("this ends the task and cannot be undone; if you mean it, add --yes")
    with Collector.open(Deployment.load(deployment)) as collector:
        said = erasing.erase(collector, "all" if what == "all" else "kept")
    if as_json:
        print(json.dumps(asdict(said)))
        return
    print("erased:", *said.erased, sep="\n  ")
    print("not erased:", *said.remains, sep="\n  ")


def backup(
    deployment: DeploymentFile,
    to: Annotated[
        Path, typer.Argument(metavar="DEST", help="New file, or folder for a folder's tasks.")
    ],
    drill: Annotated[
        bool, typer.Option("--drill", help="Restore the copy in a scratch place and read it.")
    ] = False,
    key: Annotated[
        bool, typer.Option("--key", help="Copy the key file too; keep the two apart.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Copy a task's database while it runs; the witness is never copied.

    Example: tacit backup coach.toml coach-copy.db --drill
    """
    from tacit_service.config.deployment import Deployment
    from tacit_service.storage import backup as copies

    found: dict[str, copies.Drill | None] = {}
    made: list[str] = []
    for file, copy in _copies(deployment, to):
        read = Deployment.load(file)
        keyed = key and (read.model == "joint" or not deployment.is_dir())
        made += [str(path) for path in copies.backup(read, copy, key=keyed)]
        found[file.stem] = copies.drill(read, copy) if drill else None
    if as_json and deployment.is_dir():
        drills = {name: one and asdict(one) for name, one in found.items()}
        print(json.dumps({"files": made, "drills": drills}))
    elif as_json:
        (one,) = found.values()
        print(json.dumps({"files": made, "drill": one and asdict(one)}))
    else:
        print(f"wrote {' and '.join(made)}")
        for name, one in found.items():
            if one is not None:
                print(f"{name}: {one}" if deployment.is_dir() else one)
    if any(one is not None and one.problem for one in found.values()):
        raise typer.Exit(1)


def _copies(deployment: Path, to: Path) -> list[tuple[Path, Path]]:
    """Deployment files, and where their copies go: a folder's tasks go to a new folder."""
    if not deployment.is_dir():
        return [(deployment, to)]
    files = sorted(deployment.glob("*.toml"))
    if not files:
        raise InvalidInput(f"there is no task in {deployment}")
    try:
        to.mkdir(mode=0o700)
    except FileExistsError:
        raise InvalidInput(f"{to} is there already; choose another name") from None
    except OSError as error:
        raise InvalidInput(f"{to} cannot be made: {error.strerror}") from None
    return [(file, to / f"{file.stem}.copy") for file in files]
