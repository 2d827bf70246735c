"""Digests of everything that must not change while the code behind it does.

Recorded in ``digests.json``, one line per case: regret and reward after every episode, the
guarantee, every release and every publication, for every agent on every problem it fits
(``cases.py``), by the compiled loop and by ``tacit.learner.drive``; and what the service publishes
to a fleet (``fleet.py``). Worker counts, chunks and checkpoints are not part of a case: the results
of all of them must be the one recorded.

    python tests/golden/record.py            # compare, and name what differs
    python tests/golden/record.py --write    # record anew; say in the commit why results changed
    ... --thorough                           # the same for the long cases of thorough.json

Which loops equal the driver was found by running both, and is part of every record: a loop's
curves and the releases that its planner read. All of them do to the last bit but these. Equal in
law only, because they draw the noise of a batch at once: ``tacit-local`` (in bits, too, where
epsilon is so large that no report is ever wrong); ``shuffle-obi`` in tight calibration;
``ldp-ucrl-vtr``, ``ldp-bandit`` and the local model of ``private-linopt-vi`` and
``private-linopt-po`` where ``every`` exceeds 1. Without a loop (``simulate`` runs the driver):
``lsvi-ucb``; ``lsvi-ucb++`` with the theorem's bonus; ``dp-lsvi-ucb++`` and ``shuffle-obi`` in
paper calibration; ``tacit-search`` behind a shuffler.
"""

import argparse
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [] if str(FOLDER.parent) in sys.path else [str(FOLDER.parent)]

import pytest  # noqa: E402

from golden.cases import FAMILIES, cases  # noqa: E402
from golden.fleet import FLEETS, measure_fleet  # noqa: E402
from golden.machine import header, obstacles  # noqa: E402
from golden.measure import measure  # noqa: E402

HEADER = "recorded with"
SERVICE = "service "
THOROUGH = "thorough "
LONG = 2000
"""Episodes of a thorough case: loops come to the end of the rows that they draw at once."""

Digests = dict[str, str]


def names(family: str) -> list[str]:
    """Recorded cases of one family of problems, of the service, or the thorough ones."""
    if family == "service":
        return [SERVICE + name for name in FLEETS]
    if family == "thorough":
        return [THOROUGH + name for name, case in cases().items() if case.plain]
    return [name for name, case in cases().items() if case.family == family]


def measured(name: str) -> Digests:
    """The digests of a case as the code gives them now."""
    if name.startswith(SERVICE):
        return measure_fleet(name.removeprefix(SERVICE))
    if name.startswith(THOROUGH):
        return measure(cases()[name.removeprefix(THOROUGH)], LONG)
    return measure(cases()[name])


def file_of(name: str) -> Path:
    """Where a case is recorded; thorough ones apart, for they are recorded apart."""
    return FOLDER / ("thorough.json" if name.startswith(THOROUGH) else "digests.json")


@cache
def recorded(path: Path) -> dict[str, Any]:
    """The header and all recorded cases of one file."""
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def check(name: str) -> None:
    """Compare one case with its record, as a test; skipped where digits need not be the same."""
    found = recorded(file_of(name))
    if reasons := obstacles(found[HEADER]):
        pytest.skip("last digits may differ from the recorded ones. " + "; ".join(reasons))
    if differences := compare(found.get(name), measured(name)):
        pytest.fail(advice(name, differences), pytrace=False)


def compare(before: Digests | None, now: Digests) -> list[str]:
    """Parts of a case that are not as recorded."""
    if before is None:
        return ["it was never recorded"]
    return [
        f"{part}: recorded {before.get(part)}, now {now.get(part)}"
        for part in sorted(before.keys() | now.keys())
        if before.get(part) != now.get(part)
    ]


def advice(name: str, differences: list[str]) -> str:
    """What to say of a case that differs."""
    again = "python tests/golden/record.py --write"
    return "\n  ".join(
        [
            f"golden case {name!r} is not as recorded:",
            *differences,
            "Results must stay equal to the last bit. If this change is meant, say why in the "
            f"commit, and record anew: {again}{' --thorough' * name.startswith(THOROUGH)}",
        ]
    )


def write(path: Path, found: dict[str, Digests]) -> None:
    """Sorted, one line per case, the header first."""
    lines = [f"{json.dumps(HEADER)}: {json.dumps(header())}"]
    lines += [f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main() -> int:
    """Compare with the records, or write them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="record anew")
    parser.add_argument("--thorough", action="store_true", help="the long cases (minutes)")
    options = parser.parse_args()
    chosen = ["thorough"] if options.thorough else [*FAMILIES, "service"]
    wanted = [name for family in chosen for name in names(family)]
    found = {name: measured(name) for name in wanted}
    path = file_of(wanted[0])
    if options.write:
        write(path, found)
        print(f"recorded {len(found)} cases in {path}")
        return 0
    for reason in obstacles(recorded(path)[HEADER]):
        print(f"last digits may differ: {reason}")
    gone = recorded(path).keys() - found.keys() - {HEADER}
    for name in sorted(gone):
        print(f"{name!r} was recorded, and is no case any more")
    changed = {n: d for n, now in found.items() if (d := compare(recorded(path).get(n), now))}
    for name, differences in changed.items():
        print(advice(name, differences))
    print(f"{len(found) - len(changed)} of {len(found)} cases are as recorded")
    return 1 if changed or gone else 0


if __name__ == "__main__":
    sys.exit(main())
