"""Write the tables and the manifest of a sweep from its finished tasks.

Configuration by configuration, so memory does not grow with the sweep. Times go into a table of
their own: everything else is the same, to the last bit, however often the sweep was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit._version import __version__
from tacit.agents.catalogue import PRIVACY_PARAMETERS
from tacit.util.files import write_json
from tacit_lab.sweep.dataset import CSV, CURVES, FORMAT, MANIFEST, RUNS, TIMINGS
from tacit_lab.sweep.grid import Planned
from tacit_lab.sweep.store import Finished
from tacit_lab.sweep.task import Coming, Configuration, SweepTask, sources

if TYPE_CHECKING:
    import pyarrow as pa

_SETTINGS = {
    "configuration": "int32",
    "label": "string",
    "problem": "string",
    "agent": "string",
    "model": "string",
    "epsilon": "float64",
    "delta": "float64",
    "calibration": "string",
    "true_epsilon": "float64",
    "true_delta": "float64",
    "episodes": "int64",
}
_POINT = {"seed": "int64", "episode": "int64", "regret": "float64", "reward": "float64"}
_TIMING = {
    "configuration": "int32",
    "seed": "int64",
    "task": "string",
    "run_seconds": "float64",
    "task_seconds": "float64",
}

_GROUP_ROWS = 100_000

Outcomes = Mapping[int, Mapping[str, Any]]
"""Of one configuration, by seed."""


def write(
    folder: Path,
    name: str,
    reported: Sequence[Planned],
    finished: Finished,
    failures: Sequence[Mapping[str, Any]],
) -> list[Path]:
    """Write everything; each file appears complete or not at all, the manifest last."""
    import pyarrow.csv

    types = _parameter_types([item.configuration for item in reported])
    back = any(item.configuration.coming != Coming() for item in reported)
    point = {**_POINT, "day": "float64"} if back else _POINT
    schema, timing = _schema({**_SETTINGS, **types, **point}), _schema(_TIMING)
    files = [folder / file for file in (CURVES, CSV, RUNS, TIMINGS)]
    parts = [file.with_name(file.name + ".part") for file in files]
    described: list[dict[str, Any]] = []
    made_with: dict[str, Any] = {}
    with ExitStack() as stack:
        curves, runs, timings = (
            stack.enter_context(_Parquet(part, columns))
            for part, columns in ((parts[0], schema), (parts[2], schema), (parts[3], timing))
        )
        text = stack.enter_context(pyarrow.csv.CSVWriter(parts[1], schema))
        for number, item in enumerate(reported):
            tasks = [SweepTask(item.configuration, seed) for seed in item.seeds]
            tasks = [task for task in tasks if task in finished]
            outcomes = {task.seed: finished.outcome(task) for task in tasks}
            described.append(_described(number, item, outcomes))
            if not outcomes:
                continue
            made_with |= {json.dumps(o["made_with"]): o["made_with"] for o in outcomes.values()}
            row = _row(described[-1], item.configuration, types)
            table, points = _points(row, outcomes, schema)
            curves.add(table)
            text.write_table(table)
            runs.add(table.take(list(range(points - 1, table.num_rows, points))))
            timings.add(_times(number, tasks, outcomes, timing))
    for part, file in zip(parts, files, strict=True):
        part.replace(file)
    manifest = {
        "format": FORMAT,
        "tacit": __version__,
        "name": name,
        "sources": sources(),
        "made_with": list(made_with.values()),
        "seeds": sorted({seed for item in reported for seed in item.seeds}),
        "settings": [*_SETTINGS, *types],
        "configurations": described,
        "failures": list(failures),
    }
    write_json(folder / MANIFEST, manifest)
    return [*files, folder / MANIFEST]


class _Parquet:
    """A parquet file that small tables are added to, in row groups of a useful size."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._writer = pq.ParquetWriter(path, schema)
        self._tables: list[pa.Table] = []
        self._rows = 0

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, *error: object) -> None:
        self._flush()
        self._writer.close()

    def add(self, table: pa.Table) -> None:
        """Write it now or later."""
        self._tables.append(table)
        self._rows += table.num_rows
        if self._rows >= _GROUP_ROWS:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._tables:
            self._writer.write_table(pa.concat_tables(self._tables))
        self._tables, self._rows = [], 0


def _described(number: int, item: Planned, outcomes: Outcomes) -> dict[str, Any]:
    """A configuration in the manifest; facts of an unfinished one are not known."""
    first: Mapping[str, Any] = next(iter(outcomes.values()), {})
    configuration = item.configuration
    return {
        "configuration": number,
        "label": configuration.label,
        "problem": dict(first.get("problem", asdict(configuration.problem))),
        "agent": dict(first.get("agent", asdict(configuration.agent))),
        "given": {
            "problem": dict(configuration.problem.parameters),
            "agent": dict(configuration.agent.parameters),
            "reveal": list(configuration.reveal),
            "checkpoints": configuration.checkpoints,
            "coming": configuration.coming.facts(),
        },
        "episodes": configuration.episodes,
        "seeds": list(outcomes),
        "unfinished_seeds": [seed for seed in item.seeds if seed not in outcomes],
        "guarantee": first.get("guarantee"),
        "returning": first.get("returning"),
        "chosen": None if item.chosen is None else dict(item.chosen),
    }


def _row(
    described: Mapping[str, Any], configuration: Configuration, types: Mapping[str, str]
) -> dict[str, Any]:
    guarantee, agent = described["guarantee"], configuration.agent.parameters
    given = _parameters(configuration)
    return {
        "configuration": described["configuration"],
        "label": described["label"],
        "problem": configuration.problem.name,
        "agent": configuration.agent.name,
        "model": guarantee["model"],
        "epsilon": guarantee["requested_epsilon"],
        "delta": guarantee["requested_delta"],
        "calibration": agent.get("calibration"),
        "true_epsilon": guarantee["epsilon"],
        "true_delta": guarantee["delta"] if guarantee["epsilon"] is not None else None,
        "episodes": configuration.episodes,
        **{
            name: str(given[name]) if kind == "string" and name in given else given.get(name)
            for name, kind in types.items()
        },
    }


def _parameters(configuration: Configuration) -> dict[str, Any]:
    """The parameters that the spec sets, by column; privacy has columns of its own."""
    agent = {
        f"agent_{name}": value
        for name, value in configuration.agent.parameters.items()
        if name not in PRIVACY_PARAMETERS
    }
    problem = {f"problem_{name}": v for name, v in configuration.problem.parameters.items()}
    return {**problem, **agent, **configuration.coming.facts()}


def _parameter_types(configurations: Sequence[Configuration]) -> dict[str, str]:
    """One type per column: the narrowest that holds every value, text if nothing else does."""
    values: dict[str, set[type]] = {}
    for configuration in configurations:
        for name, value in _parameters(configuration).items():
            values.setdefault(name, set()).add(type(value))
    return {name: _narrowest(kinds) for name, kinds in sorted(values.items())}


def _narrowest(kinds: set[type]) -> str:
    for allowed, alias in (({bool}, "bool"), ({int}, "int64"), ({int, float}, "float64")):
        if kinds <= allowed:
            return alias
    return "string"


def _schema(types: Mapping[str, str]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in types.items()])


def _points(row: Mapping[str, Any], outcomes: Outcomes, schema: pa.Schema) -> tuple[pa.Table, int]:
    """All curves of a configuration, one below the other, and the length of each."""
    import pyarrow as pa

    points = len(next(iter(outcomes.values()))["episode"])
    columns = {
        name: [value for outcome in outcomes.values() for value in outcome[name]]
        for name in ("episode", "regret", "reward")
    }
    nobody = {"days": [None] * points}  # nobody comes back
    days = [(outcome.get("returning") or nobody)["days"] for outcome in outcomes.values()]
    columns["day"] = [day for each in days for day in each]
    columns["seed"] = [seed for seed in outcomes for _ in range(points)]
    length = points * len(outcomes)
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.repeat(pa.scalar(row[field.name], field.type), length)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema), points


def _times(
    number: int, tasks: Sequence[SweepTask], outcomes: Outcomes, schema: pa.Schema
) -> pa.Table:
    import pyarrow as pa

    rows = [
        {
            "configuration": number,
            "seed": task.seed,
            "task": task.digest,
            "run_seconds": outcomes[task.seed]["timing"]["seconds"],
            "task_seconds": outcomes[task.seed]["timing"]["task"],
        }
        for task in tasks
    ]
    return pa.Table.from_pylist(rows, schema=schema)
