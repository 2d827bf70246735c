import sys

import pytest

from tacit.cli import main as cli


class Output:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> Output:
        monkeypatch.setattr(sys, "argv", ["tacit", *words])
        with pytest.raises(SystemExit) as leave:
            cli.main()
        captured = capsys.readouterr()
        return Output(leave.value.code, captured.out, captured.err)

    return run
