"""Digests of everything that must not change while the code behind it does.

Recorded in ``digests.json``, one line per case: regret and reward after every episode, the
guarantee, every release and every publication, for every agent on every problem it fits
(``cases.py``), by the compiled loop and by ``tacit.learner.drive``; and what the service publishes
to a fleet (``fleet.py``). Worker counts, chunks and checkpoints are not part of a case: the results
of all of them must be the one recorded. All is worked out in a process with pinned arithmetic
(``machine.py``), so the digests hold on every Linux machine with an x86-64 processor.

    python tests/golden/record.py            # compare, and name what differs
    python tests/golden/record.py --write    # record anew; say in the commit why results changed
    ... --thorough                           # the same for the long cases of thorough.json
    ... --frozen                             # and for commands, files and terms (frozen.py)

Which loops equal the driver was found by running both, and is part of every record: a loop's
curves and the releases that its planner read. All of them do to the last bit but these. Equal in
law only, because they draw the noise of a batch at once: ``tacit-local`` (in bits, too, where
epsilon is so large that no report is ever wrong); ``shuffle-obi`` in tight calibration;
``ldp-ucrl-vtr``, ``ldp-bandit`` and the local model of ``private-linopt-vi`` and
``private-linopt-po`` where ``every`` exceeds 1. Without a loop (``simulate`` runs the driver):
``lsvi-ucb``; ``lsvi-ucb++`` and ``dp-lsvi-ucb++`` with the theorem's bonus; ``dp-lsvi-ucb++`` and
``shuffle-obi`` in paper calibration; ``tacit-search`` behind a shuffler.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [] if str(FOLDER.parent) in sys.path else [str(FOLDER.parent)]

import pytest  # noqa: E402

from golden import machine  # noqa: E402
from golden.cases import FAMILIES, cases  # noqa: E402
from golden.fleet import FLEETS, measure_fleet  # noqa: E402
from golden.frozen import COMMANDS, FACTS, measure_frozen  # noqa: E402
from golden.measure import measure  # noqa: E402

HEADER = "recorded with"
SERVICE = "service "
THOROUGH = "thorough "
FROZEN = "frozen "
FILES = {THOROUGH: "thorough.json", FROZEN: "frozen.json"}
"""Files of the cases whose names begin so; all others are in ``digests.json``."""
SETS = {
    "digests": (*FAMILIES, "service"),
    "thorough": ("thorough",),
    "frozen": ("frozen",),
}
"""What is recorded together, as the families that it is made of."""
LONG = 2000
"""Episodes of a thorough case: loops come to the end of the rows that they draw at once."""

Digests = dict[str, str]


def names(family: str) -> list[str]:
    """Recorded cases of one family of problems, of the service, or the thorough ones."""
    if family == "service":
        return [SERVICE + name for name in FLEETS]
    if family == "thorough":
        return [THOROUGH + name for name, case in cases().items() if case.plain]
    if family == "frozen":
        return [FROZEN + name for name in (*FACTS, *COMMANDS)]
    return [name for name, case in cases().items() if case.family == family]


def measured(name: str) -> Digests:
    """The digests of a case as the code gives them now, in this process; or what went wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if name.startswith(SERVICE):
                return measure_fleet(name.removeprefix(SERVICE))
            if name.startswith(FROZEN):
                return measure_frozen(name.removeprefix(FROZEN))
            if name.startswith(THOROUGH):
                return measure(cases()[name.removeprefix(THOROUGH)], LONG)
            return measure(cases()[name])
    except Exception:
        return {"failed": traceback.format_exc()}


@cache
def answers(*families: str) -> dict[str, Digests]:
    """The header and all cases of some families as the code gives them now, pinned.

    One process works all of them out, and every test of this process reads its answer.
    """
    if machine.is_pinned():
        machine.add_plainly()
        wanted = [name for family in families for name in names(family)]
        return {HEADER: machine.header(), **{name: measured(name) for name in wanted}}
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, __file__, "--answers", file.name, *families]
        subprocess.run(command, env=machine.pinned_environment(), check=True)
        found: dict[str, Digests] = json.load(file)
    return found


def file_of(name: str) -> Path:
    """Where a case is recorded."""
    return FOLDER / next(
        (f for begin, f in FILES.items() if name.startswith(begin)), "digests.json"
    )


@cache
def recorded(path: Path) -> dict[str, Any]:
    """The header and all recorded cases of one file."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def check(family: str, name: str) -> None:
    """Compare one case with its record, as a test."""
    if reason := machine.reason_to_skip():
        pytest.skip(reason)
    found, now = recorded(file_of(name)), answers(family)
    if differences := compare(found.get(name), now[name]):
        differences += machine.differences(found[HEADER], now[HEADER])
        pytest.fail(advice(name, differences), pytrace=False)


def compare(before: Digests | None, now: Digests) -> list[str]:
    """Parts of a case that are not as recorded."""
    if before is None:
        return ["it was never recorded"]
    return machine.differences(before, now)


def advice(name: str, differences: list[str]) -> str:
    """What to say of a case that differs."""
    kind = next((f" --{begin.strip()}" for begin in FILES if name.startswith(begin)), "")
    return "\n  ".join(
        [
            f"golden case {name!r} is not as recorded:",
            *differences,
            "Results must stay equal to the last bit. If this change is meant, say why in the "
            f"commit, and record anew: python tests/golden/record.py{kind} --write",
        ]
    )


def write(path: Path, found: dict[str, Digests]) -> None:
    """Sorted, one line per case, the header first."""
    cases = sorted(found.keys() - {HEADER})
    lines = [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in (HEADER, *cases)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    """Compare with the records, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="record anew")
    parser.add_argument("--thorough", action="store_true", help="the long cases (minutes)")
    parser.add_argument("--frozen", action="store_true", help="commands, files, terms")
    parser.add_argument("--answers", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.answers:  # asked by this file, in a pinned process
        file, *families = options.answers
        Path(file).write_text(json.dumps(answers(*families)))
        return 0
    if reason := machine.reason_to_skip():
        sys.exit(reason)
    chosen = "thorough" if options.thorough else "frozen" if options.frozen else "digests"
    found, path = answers(*SETS[chosen]), FOLDER / f"{chosen}.json"
    if failed := {name: said["failed"] for name, said in found.items() if "failed" in said}:
        sys.exit("\n".join(f"{name}:\n{said}" for name, said in failed.items()))
    if options.write:
        write(path, found)
        print(f"recorded {len(found) - 1} cases in {path}")
        return 0
    before = recorded(path)
    for reason in machine.differences(before[HEADER], found.pop(HEADER)):
        print(f"not as it was recorded with: {reason}")
    gone = before.keys() - found.keys() - {HEADER}
    for name in sorted(gone):
        print(f"{name!r} was recorded, and is no case any more")
    changed = {n: d for n, now in found.items() if (d := compare(before.get(n), now))}
    for name, differences in changed.items():
        print(advice(name, differences))
    print(f"{len(found) - len(changed)} of {len(found)} cases are as recorded")
    return 1 if changed or gone else 0


if __name__ == "__main__":
    sys.exit(main())
