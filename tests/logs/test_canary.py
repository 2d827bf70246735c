"""Raw values of a log are in no file, on no page and in no message; exact counts on screen only."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from tacit.cli.main import app
from tacit_lab.report.log_page import write_log_page

CANARY = "canary7351"
REWARD = 0.123456787
PEOPLE, TASK = (
    437,
    """
[data]
name = "birds"
[budget]
epsilon = 12.0
[columns]
person = "person"
step = "step"
reward = "reward"
propensity = "chance"
[[state]]
column = "state"
values = ["left", "right"]
other = "elsewhere"
[action]
column = "action"
values = ["stay", "move"]
other = "stay"
[task]
horizon = 4
""",
)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    n = PEOPLE * 4
    person = np.repeat([f"{CANARY}-{i}" for i in range(PEOPLE)], 4)
    state, action = rng.choice(["left", "right"], n), rng.choice(["stay", "move"], n)
    state[5], action[9] = CANARY, CANARY
    reward = np.where(rng.random(n) < 0.5, REWARD, 0.0)
    step = np.tile(np.arange(4), PEOPLE)
    columns = {"person": person, "step": step, "state": state, "action": action}
    table = pa.table({**columns, "reward": reward, "chance": np.full(n, 0.5)})
    pyarrow.csv.write_csv(table, tmp_path / "log.csv")
    (tmp_path / "task.toml").write_text(TASK)
    return tmp_path


def command(*words, status=0):
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == status, result.output
    return result


def leaks(text: str) -> set[str]:
    """Raw values anywhere in a text, and exact counts that stand in it as numbers of their own."""
    raw = {word for word in (CANARY, str(REWARD), "0.12345") if word in text}
    counts = (f"{PEOPLE}", f"{PEOPLE * 4:,}", f"{PEOPLE * 4}")
    alone = r"(?<![\w.]){}(?!\w|\.0*[1-9])"
    return raw | {count for count in counts if re.search(alone.format(count), text)}


def outputs(folder, out) -> dict[str, str]:
    """Everything that one release of the log writes or prints for other eyes, by its name."""
    log, task = folder / "log.csv", folder / "task.toml"
    shown = command("offline", log, "--task", task, "--epsilon", "1", "--out", out)
    assert f"{PEOPLE:,} (exact" in shown.output, "the screen of the data holder says it"
    found = command("offline", log, "--task", task, "--epsilon", "1", "--json").stdout
    write_log_page(out)
    told = ("--policy", out / "policy.json", "--task", task, "--json")
    by_weights, by_release = ("offline", log, *told, "--epsilon", "1"), ("offline", out, *told)
    texts = {"json": found, "weights": command(*by_weights).stdout}
    texts["release"] = command(*by_release).stdout
    for path in (*out.iterdir(), *folder.glob("birds.ledger*")):
        texts[path.name] = path.read_bytes().decode("latin-1")
    return texts


def test_no_raw_value_and_no_exact_count_is_in_any_output(folder) -> None:
    # A noisy count of people is published and rounds to the exact one in about 3 of 100 releases;
    # it does so in all of four with a chance below 1e-5.
    releases = [outputs(folder, folder / f"out{i}") for i in range(4)]
    assert {"policy.json", "values.json", "page.html", "release.npz"} <= set(releases[0])
    for name in releases[0]:
        assert not set.intersection(*(leaks(texts[name]) for texts in releases)), name
    with np.load(folder / "out0" / "release.npz") as stored:
        for name, block in stored.items():
            assert not np.isin(np.ravel(block), [PEOPLE, PEOPLE / 2]).any(), name
    report = json.loads(releases[0]["json"])
    assert report["guarantee"]["unit"] == "user" and "a released number" in report["note"]
    assert "a released number" in command("show", folder / "out0/policy.json").output


def test_the_check_would_notice(folder) -> None:
    assert leaks((folder / "log.csv").read_text())
    assert leaks(f'"people": {PEOPLE}') == leaks(f"{PEOPLE}.0 people") == {f"{PEOPLE}"}
    assert not leaks(f"0.{PEOPLE}1 of 2{PEOPLE}")


def test_messages_about_a_log_do_not_quote_it(folder) -> None:
    log, task = folder / "log.csv", folder / "task.toml"
    log.write_text(log.read_text().replace('"chance"', '"chanse"', 1))
    with pytest.raises(Exception) as caught:
        CliRunner().invoke(
            app,
            ["offline", str(log), "--task", str(task), "--epsilon", "1"],
            catch_exceptions=False,
        )
    assert not leaks(str(caught.value))


def test_a_line_with_too_many_cells_is_counted_and_not_quoted(folder) -> None:
    with (folder / "log.csv").open("a") as file:
        file.write(f"{CANARY},{CANARY},{CANARY},{CANARY},{CANARY},{CANARY},{CANARY},1\n")
    words = "offline", folder / "log.csv", "--task", folder / "task.toml", "--epsilon", "1"
    shown = command(*words).output
    assert "rows that have too many or too few cells: 1 (exact" in shown and CANARY not in shown
