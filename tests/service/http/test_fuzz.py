"""Every operation of the OpenAPI document under generated requests, valid and invalid.

Schemathesis with all its checks: no server error, only documented statuses, content types and
bodies, refusal of what the document does not allow, 405 with Allow, tokens really needed.
``pytest -m slow tests/service/http/test_fuzz.py`` looks longer, with new seeds.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = """
color = false
headers = {{ Authorization = "Bearer {operator}" }}
[[operations]]
include-path = "/v1/reports"
headers = {{ Authorization = "Bearer {device}" }}
[operations.checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 409, 413, 415, 422, 429, "5xx"]
"""


def fuzz(service, folder: Path, *options: str, more: str = "") -> int:
    """Run it against the service; the number of requests it made."""
    file = folder / "fuzz.settings"
    file.write_text(SETTINGS.format(operator=service.operator, device=service.device) + more)
    program = str(Path(sys.executable).with_name("schemathesis"))
    command = [program, "--config-file", str(file), "run", f"{service.url}/openapi.json"]
    done = subprocess.run(
        [*command, "--request-timeout", "600", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=3600,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"Selected: (\d+)/\1\n", done.stdout), done.stdout
    return int(re.search(r"(\d+) generated, \1 passed", done.stdout)[1])


def test_the_api_keeps_its_document(service, tmp_path: Path) -> None:
    made = fuzz(service, tmp_path, "--max-examples", "25", "--generation-deterministic")
    assert made > 200
    assert service.client.get("/healthz").json()["status"] == "ok"


@pytest.mark.slow
def test_the_api_keeps_its_document_for_long(service, tmp_path: Path) -> None:
    assert fuzz(service, tmp_path, "--max-examples", "3000") > 3_000
