"""Promises about the repository itself."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import tacit

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_one_version_everywhere() -> None:
    assert tacit.__version__ == metadata.version("tacit")
    assert PROJECT["project"]["dynamic"] == ["version"]


def test_constraints_pin_everything_and_hold_no_addresses() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.+!-]+", line) for line in lines)
    pinned = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines}
    wanted = PROJECT["project"]["dependencies"] + [
        need for extra in PROJECT["project"]["optional-dependencies"].values() for need in extra
    ]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", need)[0]).lower() for need in wanted}
    assert names - {"tacit"} <= pinned


def test_the_package_is_typed_and_licensed() -> None:
    assert (ROOT / "src" / "tacit" / "py.typed").exists()
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert PROJECT["tool"]["mypy"]["strict"] is True
    assert PROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"] == ["error"]


def test_contributing_tells_how_to_add_each_kind() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for heading in ("## Add a problem", "## Add an agent", "## Add a mechanism"):
        assert heading in text
    for path in re.findall(r"`((?:src|tests|examples)/[\w/.]+)`", text):
        assert (ROOT / path).exists(), path


FALSE = (
    *("except with probability", "except with a probability", "except with a chance"),
    *("may fail with a probability", "may fail with probability", "fails with probability delta"),
    *("with probability delta", "probability of delta", "with probability 1 - delta"),
    *("nobody, we included, can know", "can know what really happened", "can become right in"),
    "without learning about any one",
    *(
        "other times give nothing away",
        "nothing else about the user",
        "period only, and in no other",
    ),
    *("tells nothing about the user", "learn about any one of them", "knows nobody"),
)
"""These promise more than is proved (proofs/sentences.md): of (epsilon, delta), or because that
somebody takes part, and when, can be seen."""


def as_read(text: str) -> str:
    """Text without line ends, marks of quotations, and the seams of string literals."""
    text = re.sub(r"\n\s*(?:[>#] ?)*", " ", text)
    return re.sub(r"\s+", " ", re.sub(r'"\s*[frb]*"', "", text)).lower()


def test_the_false_sentences_do_not_come_back() -> None:
    folders = [ROOT / name for name in ("src", "docs", "proofs", "examples")]
    kinds = (".py", ".md", ".html", ".js", ".toml")
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in kinds]
    files += [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    assert len(files) > 250
    found = {
        (str(path.relative_to(ROOT)), words)
        for path in files
        for words in FALSE
        if words in as_read(path.read_text())
    }
    assert found == set()


def test_a_false_sentence_is_found_however_it_is_broken() -> None:
    for broken in (
        'said += f" This may "\n        f"fail with a probability of {x}."',
        "> by a factor of at most 2, except\n> with probability 0.1",
        "# Except with\n# probability",
    ):
        assert any(words in as_read(broken) for words in FALSE), broken
