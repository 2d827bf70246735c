"""Run the whole example on this machine: service, tokens, a fleet of simulated phones.

    python examples/health_coach/run.py --users 1000
    python examples/health_coach/run.py --users 10000 --joint

Everything goes through the command line and the network, as in earnest. Files are left in --out.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
TACIT = [str(Path(sys.executable).with_name("tacit"))]


def main() -> None:
    """Serve, send, say what came of it."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--users", type=int, default=1000)
    options.add_argument("--joint", action="store_true", help="trust the operator with weeks")
    options.add_argument("--out", type=Path, default=Path("coach-run"), help="folder for files")
    options.add_argument("--json", action="store_true", help="print the fleet's JSON only")
    given = options.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    name = "coach_joint.toml" if given.joint else "coach.toml"
    for file in (name, "population.py"):
        shutil.copy(HERE / file, given.out)
    deployment, tokens = given.out / name, given.out / f"{name}.tokens"
    if not tokens.exists():
        issue = [*TACIT, "admin", "tokens", str(deployment), "issue", "--out", str(tokens)]
        count = max(10000, given.users)
        subprocess.run([*issue, "--count", str(count)], check=True, stdout=sys.stderr)
    server = subprocess.Popen(
        [*TACIT, "serve", str(deployment), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        address = wait_for_address(server, quiet=given.json)
        fleet = [*TACIT, "admin", "rehearse", str(deployment), "--address", address]
        fleet += ["--tokens", str(tokens)]
        fleet += ["--users", str(given.users), *(["--json"] if given.json else [])]
        subprocess.run(fleet, check=True)
    finally:
        server.terminate()
        server.wait()


def wait_for_address(server: subprocess.Popen[str], *, quiet: bool) -> str:
    """The address that the service announces; the rest of what it says is passed on."""
    assert server.stdout is not None
    out = sys.stderr if quiet else sys.stdout
    for line in server.stdout:
        print(line, end="", file=out)
        found = re.search(r"http://[\w.:\[\]]+", line)
        if found:
            rest = threading.Thread(target=shutil.copyfileobj, args=(server.stdout, out))
            rest.daemon = True
            rest.start()
            return found[0]
    raise SystemExit("the service did not start")


if __name__ == "__main__":
    main()
