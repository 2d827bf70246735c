"""The options that several commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ProblemName = Annotated[str, typer.Argument(metavar="PROBLEM", help="See: tacit list problems")]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="See: tacit list agents")]
ProblemParameters = Annotated[
    list[str] | None, typer.Option("-P", metavar="KEY=VALUE", help="Problem parameter.")
]
AgentParameters = Annotated[
    list[str] | None, typer.Option("-A", metavar="KEY=VALUE", help="Agent parameter.")
]
Epsilon = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Privacy asked for (private agents only).")
]
Delta = Annotated[
    str | None, typer.Option(metavar="NUMBER", help="Privacy asked for (private agents only).")
]
Calibration = Annotated[
    str | None, typer.Option(metavar="WORD", help="tight or paper (private agents only).")
]
Episodes = Annotated[str, typer.Option(metavar="N", help="Users, one episode each.")]
Seeds = Annotated[str, typer.Option(metavar="N", help="Number of independent runs.")]
Seed = Annotated[str, typer.Option(metavar="N", help="Root of the random streams.")]
Workers = Annotated[str | None, typer.Option(metavar="N", help="Threads (default: one per core).")]
Processes = Annotated[
    str | None, typer.Option(metavar="N", help="Local processes (default: one per core).")
]
Checkpoints = Annotated[
    str, typer.Option(metavar="N", help='"log", or n to record every n-th episode.')
]
Reveal = Annotated[
    list[str] | None, typer.Option(metavar="FACT", help="Fact told to the learner, e.g. reward.")
]
Out = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder for curves, manifest and plot.")
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the result in --out.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw regret into a file.")]
LogLog = Annotated[bool, typer.Option("--log-log", help="Logarithmic axes.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Trials = Annotated[
    str,
    typer.Option(
        metavar="N",
        help="Of each path, at most; fewer if a bound is violated or nearly reached before.",
    ),
]
AuditSeconds = Annotated[
    str, typer.Option(metavar="NUMBER", help="How long all of it may take, roughly.")
]
Participations = Annotated[
    str, typer.Option(metavar="N", help="How often one person takes part; all are covered.")
]
ServicePath = Annotated[
    bool, typer.Option("--service", help="Audit a running service too (tacit-joint on tables).")
]
Confidence = Annotated[str, typer.Option(metavar="NUMBER", help="That no bound is too high.")]
DeploymentFile = Annotated[
    Path, typer.Argument(metavar="DEPLOYMENT", help="TOML file; --init of serve writes one.")
]
