"""The page of the deployment file's keys is that of the code."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_spec = importlib.util.spec_from_file_location("deployment_file", DOCS / "deployment_file.py")
written = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(written)


def test_the_page_lists_the_keys_of_the_code() -> None:
    assert written.PAGE.read_text() == written.page(), "run: python docs/deployment_file.py"
    for words in ("| `horizon` | must be given |", "| `port` | `8080` |", "## `[search]`"):
        assert words in written.page()
