"""``tacit serve`` and ``tacit tokens`` as commands; running it is tested with the service."""

import json
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from patience import PATIENCE
from tacit.privacy.sentences import consent
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment


@pytest.fixture
def file(call, tmp_path: Path) -> Path:
    assert call("serve", "coach.toml", "--init").status == 0
    return tmp_path / "coach.toml"


def test_init_writes_the_example_once(call, file: Path) -> None:
    text = file.read_text()
    assert text == Deployment.example()
    again = call("serve", "coach.toml", "--init")
    assert again.status == 2 and "there already" in again.err
    assert file.read_text() == text


def test_check_says_what_would_run_and_touches_nothing(
    call, file: Path, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr("tacit.cli.size.CHECK_SECONDS", 600.0)  # it ends when it knows
    done = call("serve", "coach.toml", "--check")
    assert done.status == 0
    for words in (
        "6 states, 2 actions, horizon 12",
        "tacit-local, local model",
        "20,000 reports, one token per device",
        "batches of at least 100",
        "held on the device for 12 days from the beginning of an episode",
        "may name a policy until 24 days 6 hours after it was replaced",
        "differential privacy, local model",
        "Forecast: after 20,000 reports",
        "Outlook: To close 50% of the gap with 20,000 users: epsilon 4 is enough. (With 95% "
        "confidence, by 8 simulated runs on ",
    ):
        assert words in done.out
    assert [path.name for path in tmp_path.iterdir()] == ["coach.toml"]
    report = json.loads(call("serve", "coach.toml", "--check", "--json").out)
    assert report["task_id"] == Deployment.load(file).task_id
    assert report["model"] == "local" and report["guarantee"]["simulated"] is False
    assert report["forecast"]["users"] == report["plan"]["users"] == 20_000
    timing = report["timing"]
    assert (timing["duration"], timing["delay"], timing["grace"]) == (1036800, 21600, 1036800)
    file.write_text(file.read_text().replace('duration = "12d"', ""))
    assert "can tell who stopped early." in call("serve", "coach.toml", "--check").out


def test_check_warns_of_too_few_users(call, file: Path, monkeypatch) -> None:
    monkeypatch.setattr("tacit.cli.size.CHECK_SECONDS", 600.0)
    text = file.read_text().replace("users = 20000 ", "users = 300 ")
    file.write_text(text.replace("epsilon = 4.0", "epsilon = 0.1"))
    said = call("serve", "coach.toml", "--check").out
    assert "Warning: To close 50% of the gap with 300 users: epsilon 0.1 is not enough." in said
    assert "`tacit plan coach.toml` takes its time" in said


def test_consent_is_told_with_the_numbers_of_the_file(call, file: Path, tmp_path: Path) -> None:
    done = call("serve", "coach.toml", "--consent")
    assert done.status == 0 and [path.name for path in tmp_path.iterdir()] == ["coach.toml"]
    said = Deployment.load(file).guarantee
    assert done.out == consent(said, name="river-swim", steps=12, kept=False) + "\n"
    joint = file.read_text().replace('"tacit-local"', '"tacit-joint"\ndelta = 1e-5')
    joint = joint.replace(
        "# [storage]", "[storage]\nkeep_reports = true\nwitness_on_same_disk = true"
    )
    file.write_text(joint.replace('"per-device"', '"shared"'))
    text = " ".join(call("serve", "coach.toml", "--consent").out.split())
    for words in ("sends us the record", "keeps an encrypted copy", "Nobody counts how often"):
        assert words in text


def test_check_hides_the_password_of_the_database(call, file: Path) -> None:
    url = 'database = "postgresql://me:hush@localhost/name"'
    file.write_text(file.read_text().replace("# [storage]", f"[storage]\n{url}"))
    done = call("serve", "coach.toml", "--check")
    assert done.status == 0 and "postgresql+psycopg://me:***@localhost/name" in done.out
    assert "hush" not in done.out


def test_mistakes_are_sentences(call, file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        for words, expected in (
            (("serve", "none.toml"), "--init"),
            (("serve", "coach.toml", "--port", port), "in use"),
            (("serve", "coach.toml", "--port", "70000"), "--port"),
            (("serve", "coach.toml", "--port", "x"), "--port"),
            (("serve", "coach.toml", "--workers", "2"), "PostgreSQL"),
            (("serve", "coach.toml", "--workers", "0"), "--workers"),
            (("serve", "coach.toml", "--host", "no.such.host.invalid"), "--host"),
            (("serve", "coach.toml", "--init", "--check"), "choose one"),
            (("serve", "coach.toml", "--check", "--consent"), "choose one"),
            (("serve", "coach.toml", "--consent", "--json"), "--check"),
            (("serve", "coach.toml", "--json"), "--check"),
            (("tokens", "coach.toml", "give"), "issue, list, revoke"),
            (("tokens", "coach.toml", "issue", "--role", "king"), "device, operator"),
            (("tokens", "coach.toml", "issue", "--count", "0"), "--count"),
            (("tokens", "coach.toml", "issue"), "--out FILE"),
            (("tokens", "coach.toml", "revoke"), "NUMBER"),
            (("tokens", "coach.toml", "revoke", "99"), "no token 99"),
        ):
            done = call(*words)
            assert done.status == 2 and expected in done.err, words
            assert "Traceback" not in done.err and done.err.count("\n") == 1


def test_a_database_of_an_unknown_version_is_refused(call, file: Path, tmp_path: Path) -> None:
    Collector.open(Deployment.load(file)).close()
    with sqlite3.connect(tmp_path / "coach.db") as database:
        database.execute("UPDATE alembic_version SET version_num = 'of-the-future'")
    database.close()
    done = call("serve", "coach.toml", "--port", "0")
    assert done.status == 2 and "of-the-future" in done.err


def test_a_database_of_another_task_is_refused(call, file: Path) -> None:
    Collector.open(Deployment.load(file)).close()
    file.write_text(file.read_text().replace("epsilon = 4.0", "epsilon = 2.0"))
    done = call("serve", "coach.toml", "--port", "0")
    assert done.status == 2 and "another task" in done.err


def test_a_damaged_or_read_only_database_is_a_sentence(call, file: Path, tmp_path: Path) -> None:
    database = tmp_path / "coach.db"
    database.write_bytes(b"this is a letter, not a database\n" * 100)
    for words in (("serve", "coach.toml", "--port", "0"), ("tokens", "coach.toml", "list")):
        done = call(*words)
        assert done.status == 2 and "not a database" in done.err
        assert "Traceback" not in done.err and done.err.count("\n") == 1
    database.unlink()
    database.mkdir()
    done = call("serve", "coach.toml", "--port", "0")
    assert done.status == 2 and "cannot be written" in done.err and done.err.count("\n") == 1


def test_tokens_are_issued_listed_and_revoked(call, file: Path, tmp_path: Path) -> None:
    command = ("tokens", "coach.toml")
    made = json.loads(
        call(*command, "issue", "--role", "operator", "--label", "me", "--show", "--json").out
    )
    assert made["role"] == "operator" and len(made["tokens"]) == 1
    done = call(*command, "issue", "--count", "3", "--out", "tokens.txt")
    assert done.status == 0 and "wrote 3 tokens" in done.out
    written = tmp_path / "tokens.txt"
    assert written.stat().st_mode & 0o777 == 0o600
    tokens = written.read_text().split()
    assert len(set(tokens)) == 3 and all(len(token) == 43 for token in tokens)
    assert call(*command, "issue", "--out", "tokens.txt").status == 2
    assert len(call(*command, "issue", "--count", "2", "--show").out.split()) == 2
    known = json.loads(call(*command, "list", "--json").out)["tokens"]
    assert [token["role"] for token in known] == ["operator", *["device"] * 5]
    listed = call(*command, "list").out
    assert "me" in listed and not any(token in listed for token in tokens)
    assert call(*command, "revoke", str(known[1]["id"])).status == 0
    with Collector.open(Deployment.load(file)) as collector:
        assert collector.tokens.authenticate(tokens[0]) is None
        assert collector.tokens.authenticate(tokens[1]).role == "device"
    for path in tmp_path.glob("coach.db*"):
        assert not any(token.encode() in path.read_bytes() for token in tokens)


def test_a_curator_without_its_key_is_refused(call, file: Path, tmp_path: Path) -> None:
    text = file.read_text().replace('"tacit-local"', '"tacit-joint"\ndelta = 1e-5')
    file.write_text(text)
    done = call("serve", "coach.toml", "--check")
    assert done.status == 2 and "witness_on_same_disk = true" in done.err
    file.write_text(text.replace("# [storage]", "[storage]\nwitness_on_same_disk = true"))
    assert "noise can be drawn twice" in call("serve", "coach.toml", "--check").out
    Collector.open(Deployment.load(file)).close()
    key = tmp_path / "coach.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.unlink()
    done = call("serve", "coach.toml", "--port", "0")
    assert done.status == 2 and "coach.key" in done.err and done.err.count("\n") == 1


def test_a_planner_of_its_own_plans_and_stops_in_good_order(file: Path) -> None:
    start = "import sys; from tacit.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "serve", str(file), "--role", "planner"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as planner:
        try:
            assert planner.stdout is not None and " plans " in planner.stdout.readline()
            with Collector.open(Deployment.load(file)) as collector:
                deadline = time.monotonic() + PATIENCE
                while not collector.status().planner_alive and time.monotonic() < deadline:
                    time.sleep(0.05)
                assert collector.status().planner_alive
                planner.terminate()
                assert planner.wait(PATIENCE) == 0
                assert not collector.status().planner_alive
        finally:
            planner.kill()


def test_a_planner_takes_no_reports(call, file: Path) -> None:
    for words in (("--workers", "2"), ("--host", "127.0.0.1")):
        refused = call("serve", "coach.toml", "--role", "planner", *words)
        assert refused.status == 2 and "takes no reports" in refused.err


def test_a_task_is_paused_and_closed(call, file: Path) -> None:
    assert call("task", "coach.toml", "pause", "--json").out.strip() == '{"state": "paused"}'
    assert "takes reports" in call("task", "coach.toml", "resume").out
    unsure = call("task", "coach.toml", "close")
    assert unsure.status == 2 and "add --yes" in unsure.err
    assert call("task", "coach.toml", "close", "--yes").status == 0
    again = call("task", "coach.toml", "resume")
    assert again.status == 2 and "stays so" in again.err


def test_a_copy_is_made_once_and_the_drill_reads_it(call, file: Path, tmp_path: Path) -> None:
    missing = call("backup", "coach.toml", "copy.db")
    assert missing.status == 2 and "start the task first" in missing.err
    assert not (tmp_path / "copy.db").exists()
    with Collector.open(Deployment.load(file)) as collector:
        collector.tokens.issue("operator", 1, "first")
        done = call("backup", "coach.toml", "copy.db", "--drill")  # while it runs
        policy = collector.policy().body
    assert done.status == 0 and "Usable: 0 reports counted, 1 policies" in done.out
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    assert call("backup", "coach.toml", "copy.db").status == 2
    (tmp_path / "copy.db").replace(tmp_path / "coach.db")
    with Collector.open(Deployment.load(file)) as collector:
        assert collector.policy().body == policy and len(collector.tokens.list()) == 1


def test_a_folder_is_copied_task_by_task(call, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    assert "there is no task" in call("backup", "tasks", "copies").err
    for name in ("one", "two"):
        (folder / f"{name}.toml").write_text(file.read_text())
        Collector.open(Deployment.load(folder / f"{name}.toml")).close()
    done = call("backup", "tasks", "copies", "--drill")
    assert done.status == 0, done.err
    assert "one: Usable: 0 reports" in done.out and "two: Usable: 0 reports" in done.out
    copies = sorted((tmp_path / "copies").iterdir())
    assert [copy.name for copy in copies] == ["one.copy", "two.copy"]
    assert call("backup", "tasks", "copies").status == 2


def test_the_drill_notices_what_is_wrong(call, file: Path, tmp_path: Path) -> None:
    with Collector.open(Deployment.load(file)):
        pass
    with sqlite3.connect(tmp_path / "coach.db") as connection:
        connection.execute("DELETE FROM publications")
    done = call("backup", "coach.toml", "copy.db", "--drill")
    assert done.status == 1 and "NOT USABLE: publications are missing" in done.out
    refused = call("backup", "coach.toml", "other.db", "--key")
    assert refused.status == 2 and "no key file" in refused.err
