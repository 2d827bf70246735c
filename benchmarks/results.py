"""Write docs/results/figures.md and its pictures from finished figures.

Run: python benchmarks/results.py DIR [DIR ...], each a folder of ``tacit reproduce --out DIR``.
The largest finished size of every figure is shown; one that is in no folder stays as the page has
it, or is listed as not run.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from PIL import Image

from tacit_lab.figures.figure import Figure
from tacit_lab.figures.reproduction import figures

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
PAPERS = {
    "tabular-ldp": "Local privacy in tables: LDP-OBI and LDP-PSRL",
    "tabular-jdp": "Joint privacy in tables: PUCB, Private-UCB and DP-UCBVI",
    "mixture-ldp": "Local privacy in linear mixtures: LDP-UCRL-VTR",
    "mixture-jdp": "Joint privacy in linear mixtures: Private-LinOpt",
    "linear-jdp": "Joint privacy in linear MDPs: DP-LSVI-UCB++",
    "lq-jdp": "Joint privacy in linear control: Private-OFU-RL",
}
VERDICTS = {True: "holds", False: "**does not hold**", None: "not decided"}
SCALES = ("paper", "full", "quick")
WIDTH, COLOURS = 1200, 255
HEAD = """# Results

What the figures of the papers show when they are run with this package: every claim beside
what was measured. Verdicts are *holds*, *does not hold* and *not decided*; see
[reproduce](../guides/reproduce.md) for what they mean and for how to run a figure. The figures of
tabular-jdp, mixture-jdp and lq-jdp are benchmarks of our own, and so is every claim that says "not
in the paper".

Pictures and numbers are from full runs unless a figure says **Quick run**. Times are processor time
on two shared cores. This page is written by `benchmarks/results.py`.
"""


def finished(figure: Figure, folders: list[Path]) -> tuple[str, dict[str, Any], Path] | None:
    """The largest finished size: its name, the claims and the picture."""
    for scale in SCALES:
        for folder in folders:
            at = folder / figure.id / scale
            if (at / "claims.json").exists():
                return scale, json.loads((at / "claims.json").read_text()), at / "figure.png"
    return None


def picture(figure: Figure, source: Path) -> str:
    """A small copy with few colours; its path from the page."""
    name = f"figures/{figure.id.replace('/', '-')}.png"
    with Image.open(source) as image:
        small = image.convert("RGBA").convert("RGB")
        small.thumbnail((WIDTH, 10 * WIDTH), Image.Resampling.LANCZOS)
        small.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(
            RESULTS / name, optimize=True
        )
    return name


def size(numbers: dict[str, int]) -> str:
    """Users, problems and runs in words."""
    said = [f"{numbers['episodes']:,} users"] if numbers["episodes"] > 1 else []
    if numbers["instances"] > 1:
        said.append(f"{numbers['instances']} problems or seeds")
    said.append(f"{numbers['runs']:,} run{'s' if numbers['runs'] > 1 else ''} each")
    return ", ".join(said)


def row(claim: dict[str, Any]) -> str:
    """One claim as a row of a table."""
    numbers = "; ".join(
        f"{name}: {'none' if value is None else f'{value:.4g}'}"
        for name, value in claim["measured"].items()
    )
    verdict = VERDICTS[claim["holds"]] + (f": {claim['why']}" if claim["why"] else "")
    cells = (claim["claim"], claim["expected"], numbers, verdict)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def section(figure: Figure, found: tuple[str, dict[str, Any], Path]) -> list[str]:
    """Picture, size, time, command and claims of one figure."""
    scale, result, source = found
    chosen = figure.at(scale)
    lines = [f"### {figure.id}", "", f"{figure.title}.", ""]
    lines += [f"![{figure.title}]({picture(figure, source)})", ""]
    told = f"{'**Quick run**' if scale == 'quick' else 'Size'}: {size(result['size'])}."
    if figure.paper_size is not None and chosen != figure.paper_size:
        paper = figure.paper_size
        told += (
            f" The paper: {paper.episodes:,} users, {paper.instances * paper.runs} runs "
            f"(`--size paper`, {paper.takes})."
        )
    command = f"tacit reproduce {figure.id}" + (" --size quick" if scale == "quick" else "")
    lines += [told, f"Time: {chosen.takes}. Command: `{command}`.", ""]
    lines += ["| claim | expected | measured | verdict |", "|---|---|---|---|"]
    lines += [row(claim) for claim in result["claims"]]
    return [*lines, ""]


def counts(name: str, one: tuple[str, dict[str, Any], Path]) -> str:
    """How many claims of a figure hold, as a row of the summary."""
    kinds = [claim["holds"] for claim in one[1]["claims"]]
    numbers = (kinds.count(kind) for kind in (True, False, None))
    return f"| `{name}` | {one[0]} | {' | '.join(map(str, numbers))} |"


def before(page: str) -> tuple[dict[str, str], dict[str, str]]:
    """Rows of the summary and sections that a page has, by figure."""
    rows = re.findall(r"^(\| `([\w/-]+)` \|.*\|)$", page, re.MULTILINE)
    parts = re.findall(r"^### ([\w/-]+)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    return (
        {name: row for row, name in rows},
        {name: f"### {name}\n{text.rstrip()}\n" for name, text in parts},
    )


def page(folders: list[Path], old: str) -> str:
    """The whole page."""
    found = {figure.id: finished(figure, folders) for figure in figures}
    rows, sections = before(old)
    lines = [HEAD, "| figure | run | hold | do not hold | not decided |", "|---|---|---|---|---|"]
    for name, one in found.items():
        kept = rows.get(name, f"| `{name}` | not run | | | |")
        lines.append(kept if one is None else counts(name, one))
    lines.append("")
    for paper, title in PAPERS.items():
        lines += [f"## {title}", ""]
        for figure in figures:
            one = found[figure.id]
            if figure.paper == paper and one is not None:
                lines += section(figure, one)
            elif figure.paper == paper and figure.id in sections:
                lines.append(sections[figure.id])
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    (RESULTS / "figures").mkdir(exist_ok=True)
    path = RESULTS / "figures.md"
    path.write_text(page(parser.parse_args().folders, path.read_text() if path.exists() else ""))


if __name__ == "__main__":
    main()
