import re
from pathlib import Path

from tacit_lab.figures.reproduction import figures

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guides" / "reproduce.md").read_text()


def test_the_table_lists_every_figure_with_its_times() -> None:
    table = PAGE.split("## Figures\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    shown = [(name.strip("`"), title, quick, full) for name, title, quick, full in rows]
    assert shown == [(f.id, f.title, f.quick.takes, f.full.takes) for f in figures]


def test_the_python_example_runs(tmp_path: Path, monkeypatch, capsys) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/guides/reproduce.md", "exec"), {})
    assert "True Laplace noise" in capsys.readouterr().out


def test_named_files_exist() -> None:
    for path in re.findall(r"`((?:src|tests)/[\w/.]+)`", PAGE):
        assert (ROOT / path).exists(), path
