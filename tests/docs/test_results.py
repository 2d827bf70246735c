import re
from pathlib import Path

from tacit_lab.figures.reproduction import figures

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
PAGE = (RESULTS / "figures.md").read_text()


def sections() -> dict[str, str]:
    parts = re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]
    return {part.split("\n", 1)[0]: part for part in parts}


def test_every_figure_has_a_section_and_a_row() -> None:
    ids = [figure.id for figure in figures]
    assert sorted(sections()) == sorted(ids)
    assert re.findall(r"^\| `([\w/-]+)` \|", PAGE, re.MULTILINE) == ids


def test_sections_state_size_time_and_command() -> None:
    for figure in figures:
        section = sections()[figure.id]
        quick = "**Quick run**" in section
        assert f"`tacit reproduce {figure.id}{' --size quick' if quick else ''}`" in section
        assert f"Time: {figure.at('quick' if quick else 'full').takes}." in section
        size = figure.quick if quick else figure.full
        assert size.episodes == 1 or f"{size.episodes:,} users" in section
        assert figure.paper_size is None or figure.paper_size.takes in section


def test_counts_of_the_summary_are_those_of_the_sections() -> None:
    rows = re.findall(r"^\| `([\w/-]+)` \| \w+ \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    for name, *counts in rows:
        table = sections()[name].split("|---|---|---|---|\n")[1].split("\n\n")[0]
        verdicts = [line.rsplit(" | ", 1)[1] for line in table.splitlines()]
        found = [
            sum(verdict.startswith(word) for verdict in verdicts)
            for word in ("holds", "**does not hold**", "not decided")
        ]
        assert found == [int(count) for count in counts], name


def test_pictures_are_there_and_small() -> None:
    pages = [PAGE, *((RESULTS / f"{study}.md").read_text() for study in ("clinic", "coach"))]
    here, *others = [re.findall(r"!\[.*?\]\((figures/[\w-]+\.png)\)", page) for page in pages]
    assert len(here) == len(figures)
    shown = [*here, *(name for page in others for name in page)]
    files = {f"figures/{path.name}" for path in (RESULTS / "figures").iterdir()}
    assert files == set(shown)
    assert all((RESULTS / name).stat().st_size < 100_000 for name in shown)
