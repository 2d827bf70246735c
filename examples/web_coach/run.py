"""Serve the page, the service it talks to, and some simulated people who were there before.

    python examples/web_coach/run.py

Then open the address that is printed. Page and service have different origins, as in earnest; the
page gets a token of its own with every visit. Files are left in --out.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent
COACH = HERE.parent / "health_coach"
CLIENT = HERE.parents[1] / "clients" / "js" / "dist" / "tacit.min.js"
TACIT = [sys.executable, "-c", "from tacit.cli.main import main; main()"]
FILES = {
    "/": (HERE / "index.html", "text/html; charset=utf-8"),
    "/coach.js": (HERE / "coach.js", "text/javascript"),
    "/tacit.min.js": (CLIENT, "text/javascript"),
}

sys.path.insert(0, str(COACH))
from run import wait_for_address  # noqa: E402


class Page(BaseHTTPRequestHandler):
    """Three files, and where the service is; every visit gets the next token."""

    visit: dict[str, str]
    tokens: list[str]

    def __init__(self, visit: dict[str, str], tokens: list[str], *connection: object) -> None:
        self.visit, self.tokens = visit, tokens
        super().__init__(*connection)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        """A file, or what a page needs to begin."""
        path, kind = FILES.get(self.path, (None, "application/json"))
        body = b"" if path is None else path.read_bytes()
        if self.path == "/visit.json" and self.tokens:
            body = json.dumps({**self.visit, "token": self.tokens.pop()}).encode()
        self.send_response(HTTPStatus.OK if body else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *anything: object) -> None:
        """Who visits is nobody's business."""


def main() -> None:
    """Serve until Ctrl-C."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--users", type=int, default=300, help="simulated people before you")
    options.add_argument("--port", type=int, default=8000, help="of the page; 0 takes a free one")
    options.add_argument("--out", type=Path, default=Path("web-coach-run"), help="folder for files")
    given = options.parse_args()
    if not CLIENT.exists():
        raise SystemExit(
            "the TypeScript client is not built yet: make clients/js/dist/tacit.min.js"
        )
    given.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "web.toml", given.out)
    shutil.copy(COACH / "population.py", given.out)
    deployment, tokens = given.out / "web.toml", given.out / "tokens.txt"
    if not tokens.exists():
        issue = [
            *TACIT,
            "admin",
            "tokens",
            str(deployment),
            "issue",
            "--count",
            "2000",
            "--out",
            str(tokens),
        ]
        subprocess.run(issue, check=True, stdout=subprocess.DEVNULL)
    visit: dict[str, str] = {}
    answer = partial(Page, visit, tokens.read_text().split())
    page = ThreadingHTTPServer(("127.0.0.1", given.port), answer)
    here = f"http://127.0.0.1:{page.server_port}"
    server = subprocess.Popen(
        [*TACIT, "serve", str(deployment), "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TACIT_SERVER_ORIGINS": json.dumps([here])},
    )
    try:
        visit["collector"] = wait_for_address(server, quiet=False)
        fleet = [*TACIT, "admin", "rehearse", str(deployment), "--address", visit["collector"]]
        fleet += ["--tokens", str(tokens), "--users", str(given.users)]
        subprocess.run(fleet, check=True, stdout=subprocess.DEVNULL)
        threading.Thread(target=page.serve_forever, daemon=True).start()
        print(f"Play a week at {here}/ (Ctrl-C ends it)", flush=True)
        server.wait()
    except KeyboardInterrupt:
        pass
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
