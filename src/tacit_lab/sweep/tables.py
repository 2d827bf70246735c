"""The tables and the manifest of a sweep: written from its finished tasks, read as tidy frames.

``curves.parquet`` (and the same as ``curves.csv``) has one row per configuration, seed and
checkpoint, ``runs.parquet`` the last of these rows of every run, ``manifest.json`` says what each
configuration is and guarantees. Any of DuckDB, pandas and polars reads the tables; :class:`Sweep`
adds nothing to them but the manifest.

They are written configuration by configuration, so memory does not grow with the sweep. Times go
into a table of their own: everything else is the same, to the last bit, however often the sweep was
interrupted.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit._version import __version__
from tacit.agents.catalogue import PRIVACY_PARAMETERS
from tacit.errors import InvalidInput
from tacit.experiment_spec import ExperimentSpec
from tacit.util.files import read_json, write_json
from tacit_lab.sweep.spec import Planned
from tacit_lab.sweep.task import ResultStore, SweepTask, sources

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

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
        configurations: list[dict[str, Any]] = self.manifest["configurations"]
        return configurations

    @functools.cached_property
    def curves(self) -> pd.DataFrame:
        """The settings, then seed, episode, regret and reward (both cumulative).

        And the day, where people come back in some configuration. The settings (so called in the
        manifest) say which configuration a row belongs to: configuration, label, problem, agent,
        model, epsilon and delta as asked for, calibration, true_epsilon, true_delta, episodes (the
        K that was asked for), then one column ``problem_x`` or ``agent_x`` for every parameter x
        that the spec sets, and what it says of people who come back (participations, teaches and
        so on).
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
    finished: ResultStore,
    failures: Sequence[Mapping[str, Any]],
) -> list[Path]:
    """Write everything; each file appears complete or not at all, the manifest last."""
    import pyarrow.csv

    types = _parameter_types([item.configuration for item in reported])
    back = any(item.configuration.coming() for item in reported)
    point = {**_POINT, "day": "float64"} if back else _POINT
    schema, timing = _schema({**_SETTINGS, **types, **point}), _schema(_TIMING)
    files = [folder / file for file in (CURVES, CSV, RUNS, TIMINGS)]
    parts = [file.with_name(file.name + ".part") for file in files]
    described: list[dict[str, Any]] = []
    made_with: dict[str, Any] = {}
    with ExitStack() as stack:
        add_curves, add_runs, add_timings = (
            stack.enter_context(_parquet(part, columns))
            for part, columns in ((parts[0], schema), (parts[2], schema), (parts[3], timing))
        )
        text = stack.enter_context(pyarrow.csv.CSVWriter(parts[1], schema))
        for number, item in enumerate(reported):
            tasks = [task for task in item.tasks() if task in finished]
            outcomes = {task.spec.seed: finished.outcome(task) for task in tasks}
            described.append(_described(number, item, outcomes))
            if not outcomes:
                continue
            made_with |= {json.dumps(o["made_with"]): o["made_with"] for o in outcomes.values()}
            row = _row(described[-1], item.configuration, types)
            table, points = _points(row, outcomes, schema)
            add_curves(table)
            text.write_table(table)
            add_runs(table.take(list(range(points - 1, table.num_rows, points))))
            add_timings(_times(number, tasks, outcomes, timing))
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


@contextmanager
def _parquet(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """A parquet file that small tables are added to, in row groups of a useful size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    waiting: list[pa.Table] = []

    def add(table: pa.Table) -> None:
        waiting.append(table)
        if sum(each.num_rows for each in waiting) >= _GROUP_ROWS:
            flush()

    def flush() -> None:
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
            waiting.clear()

    with pq.ParquetWriter(path, schema) as writer:
        yield add
        flush()


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
            "coming": configuration.coming(),
        },
        "episodes": configuration.episodes,
        "seeds": list(outcomes),
        "unfinished_seeds": [seed for seed in item.seeds if seed not in outcomes],
        "guarantee": first.get("guarantee"),
        "returning": first.get("returning"),
        "chosen": None if item.chosen is None else dict(item.chosen),
    }


def _row(
    described: Mapping[str, Any], configuration: ExperimentSpec, types: Mapping[str, str]
) -> dict[str, Any]:
    guarantee, agent = described["guarantee"], configuration.agent.parameters
    own = _parameters(configuration)
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
            name: str(own[name]) if kind == "string" and name in own else own.get(name)
            for name, kind in types.items()
        },
    }


def _parameters(configuration: ExperimentSpec) -> dict[str, Any]:
    """The parameters that the spec sets, by column; privacy has columns of its own."""
    agent = {
        f"agent_{name}": value
        for name, value in configuration.agent.parameters.items()
        if name not in PRIVACY_PARAMETERS
    }
    problem = {f"problem_{name}": v for name, v in configuration.problem.parameters.items()}
    return {**problem, **agent, **configuration.coming()}


def _parameter_types(configurations: Sequence[ExperimentSpec]) -> dict[str, str]:
    """One type per column: the narrowest that holds every value, text if nothing else does."""
    values: dict[str, set[type]] = {}
    for configuration in configurations:
        for name, value in _parameters(configuration).items():
            values.setdefault(name, set()).add(type(value))
    aliases = (({bool}, "bool"), ({int}, "int64"), ({int, float}, "float64"))
    return {
        name: next((alias for allowed, alias in aliases if kinds <= allowed), "string")
        for name, kinds in sorted(values.items())
    }


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
        (number, task.spec.seed, task.digest, times["seconds"], times["task"])
        for task, times in zip(tasks, (o["timing"] for o in outcomes.values()), strict=True)
    ]
    return pa.Table.from_pylist([dict(zip(_TIMING, row, strict=True)) for row in rows], schema)
