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

from plain_numpy import microseconds_per_episode

import tacit

CASES = {
    "river-swim S=6 A=2 H=20": tacit.problem("river-swim"),
    "random-mdp S=A=H=2": tacit.problem("random-mdp", seed=1),
}


def per_episode(problem: tacit.TabularMDP, agent: str, episodes: int) -> float:
    result = tacit.simulate(problem, tacit.agent(agent), episodes, workers=1)
    return 1e6 * result.seconds / episodes


def simulator(lengths: list[int]) -> list[dict[str, object]]:
    rows = []
    for case, problem in CASES.items():
        for agent in ("ucb-vi", "psrl"):
            per_episode(problem, agent, 100)  # compile or load
            row: dict[str, object] = {"problem": case, "agent": agent}
            for episodes in lengths:
                row[f"{episodes:.0e}"] = round(per_episode(problem, agent, episodes), 3)
            if agent == "ucb-vi":
                plain = microseconds_per_episode(problem, 300)
                row["plain numpy"] = round(plain, 1)
                row["ratio"] = round(plain / float(str(row[f"{lengths[1]:.0e}"])))
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
    lengths = [1_000, 10_000, 100_000, 1_000_000] + [10_000_000] * chosen.long
    report = {
        "microseconds per episode": simulator(lengths),
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
