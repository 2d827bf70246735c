"""Speed and memory of the simulator and of the command line. Run: make bench.

Every number is measured in this run; ratios compare things timed side by side. ``--long`` adds the
10^7-episode rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tacit
from tacit.simulation.dispatch import compiled_run
from tacit_lab.bench.by_hand import ucb_vi

CASES = {
    "river-swim S=6 A=2 H=20": tacit.problem("river-swim"),
    "random-mdp S=A=H=2": tacit.problem("random-mdp", seed=1),
}


AGENTS: dict[str, dict[str, float]] = {"ucb-vi": {}, "psrl": {}, "ldp-obi": {"epsilon": 2.0}}


def costs(problem: tacit.TabularMDP, agent: str, marks: list[int]) -> list[float]:
    """Microseconds per episode in windows that end at the given episodes of one run."""
    bound = tacit.agent(agent, **AGENTS[agent]).bind(problem.task(users=marks[-1]))
    run = compiled_run(problem, bound, 0, 0, np.array(marks))
    assert run is not None
    run.advance(100)  # compile or load
    measured = []
    for mark in marks:
        window = min(mark // 2, 100_000)
        run.advance(mark - window - int(run.score.at[0]))
        began = time.perf_counter()
        run.advance(window)
        measured.append(1e6 * (time.perf_counter() - began) / window)
    return measured


def simulator(marks: list[int]) -> list[dict[str, object]]:
    rows = []
    for case, problem in CASES.items():
        for agent in AGENTS:
            measured = costs(problem, agent, marks)
            row: dict[str, object] = {"problem": case, "agent": agent}
            row |= {f"at {m:.0e}": round(c, 3) for m, c in zip(marks, measured, strict=True)}
            if agent == "ucb-vi":
                plain = ucb_vi(problem, 300)
                row["plain numpy"] = round(plain, 1)
                row["ratio"] = round(plain / measured[-1])
            rows.append(row)
    return rows


def parallel() -> dict[str, float]:
    """Two seeds on one worker and on two, side by side."""
    problem, agent = CASES["river-swim S=6 A=2 H=20"], tacit.agent("psrl")
    seconds = {}
    for workers in (1, 2):
        result = tacit.simulate(problem, agent, 50_000, seeds=2, workers=workers)
        seconds[f"{workers} worker(s), seconds"] = round(result.seconds, 2)
    return seconds


def peak_memory(episodes: int) -> float:
    """Peak resident megabytes of a run of that length, in a process of its own."""
    code = (
        "import resource, tacit\n"
        f"tacit.simulate(tacit.problem('random-mdp'), tacit.agent('ucb-vi'), {episodes})\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return round(float(done.stdout), 1)


def command_line() -> dict[str, float]:
    tacit_command = str(Path(sys.executable).with_name("tacit"))
    run = [tacit_command, "run", "river-swim", "psrl", "--episodes", "1e4", "--seeds", "1"]

    def seconds(*words: str) -> float:
        began = time.perf_counter()
        subprocess.run(words, capture_output=True, check=True)
        return round(time.perf_counter() - began, 2)

    with tempfile.TemporaryDirectory() as folder:
        warm = min(seconds(*run, "--out", f"{folder}/{i}") for i in range(2))
    return {
        "tacit --help, seconds": min(seconds(tacit_command, "--help") for _ in range(3)),
        "tacit run, 1e4 episodes, warm, seconds": seconds(*run),
        "the same with --out and plot, seconds": warm,
    }


def main() -> None:
    """Measure, print, and on request write the numbers as JSON."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--long", action="store_true", help="also 10^7 episodes")
    options.add_argument("--json", type=Path, help="write the numbers here")
    chosen = options.parse_args()
    marks = [1_000, 10_000, 100_000, 1_000_000] + [10_000_000] * chosen.long
    report = {
        "microseconds per episode": simulator(marks),
        "parallel seeds": parallel(),
        "peak memory, MB": {f"{k:.0e}": peak_memory(k) for k in (1_000, 1_000_000, 5_000_000)},
        "command line": command_line(),
    }
    for title, content in report.items():
        print(f"\n{title}")
        for line in content if isinstance(content, list) else [content]:
            print("  " + "  ".join(f"{key}: {value}" for key, value in line.items()))
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
