import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tacit


def tacit_command(*words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("tacit")), *words]


SMALL = ("run", "random-mdp", "psrl", "--episodes", "200", "--seeds", "2")


def test_json_is_one_object_and_nothing_else(call) -> None:
    done = call(*SMALL, "-P", "states=3", "-A", "alpha0=0.5", "--seed", "7", "--json")
    assert done.status == 0 and done.err == "" and done.out.count("\n") == 1
    report = json.loads(done.out)
    assert report["problem"]["parameters"]["states"] == 3
    assert report["agent"]["parameters"]["alpha0"] == 0.5
    assert report["seed"] == 7 and report["seeds"] == [0, 1]
    same = tacit.simulate(
        tacit.problem("random-mdp", states=3), tacit.agent("psrl", alpha0=0.5), 200, 2, seed=7
    ).to_json()
    for report_ in (report, same):
        del report_["timing"]
    assert report == same


def test_json_is_identical_on_repetition_and_for_any_number_of_workers(call) -> None:
    reports = []
    for workers in ("1", "2", "1"):
        report = json.loads(call(*SMALL, "--workers", workers, "--json").out)
        del report["timing"]
        reports.append(report)
    assert reports[0] == reports[1] == reports[2]


def test_numbers_may_be_written_as_people_write_them(call) -> None:
    done = call("run", "river-swim", "uniform", "-P", "reward_scale=1/6", "--episodes", "1e2")
    assert done.status == 0 and "after 100 episodes" in done.out


def test_words_for_people(call) -> None:
    done = call("run", "river-swim", "ucb-vi", "--episodes", "1e3", "--seeds", "2")
    for words in (
        "ucb-vi on river-swim",
        "optimal value 3.39726 per episode, uniform policy 0.043789",
        "95% interval",
        "first 100",
        "last tenth",
        "bonus scale 1 (the theorem)",
        "NO PRIVACY",
    ):
        assert words in done.out


def test_rescaled_rewards_are_announced(call) -> None:
    cliff = ("run", "gym:CliffWalking-v1", "uniform", "-P", "horizon=5", "--episodes", "10")
    assert "original = -100 + 100 x rescaled" in call(*cliff).out


def test_out_holds_curves_manifest_result_and_plot(call, tmp_path: Path) -> None:
    done = call(*SMALL, "--out", "deep/run", "--linear", "--plot", "extra.svg")
    assert done.status == 0 and "wrote deep/run" in done.out
    names = {path.name for path in (tmp_path / "deep" / "run").iterdir()}
    assert names == {"curves.parquet", "manifest.json", "result.json", "regret.png"}
    assert (tmp_path / "extra.svg").exists()
    again = call(*SMALL, "--out", "deep/run")
    assert again.status == 2 and "already holds a result" in again.err
    assert call(*SMALL, "--out", "deep/run", "--overwrite").status == 0


def test_version_and_help(call) -> None:
    assert call("--version").out == f"tacit {tacit.__version__}\n"
    for words in ((), ("--help",), ("run", "--help"), ("list", "-h"), ("demo", "--help")):
        done = call(*words)
        assert done.status == 0 and "Usage: tacit" in done.out
    for command in ("run", "list", "demo"):
        assert "Example: tacit" in call(command, "--help").out


def test_nothing_is_computed_for_a_result_that_cannot_be_kept(call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    began = time.perf_counter()
    done = call("run", "river-swim", "psrl", "--episodes", "1e12", "--out", "file")
    assert done.status == 2 and "is a file" in done.err
    assert time.perf_counter() - began < 60


def test_demo_as_json(call, tmp_path: Path) -> None:
    done = call("demo", "--json")
    report = json.loads(done.out)
    assert [run["agent"]["name"] for run in report["runs"]] == [
        "psrl",
        "tacit-local",
        "tacit-local",
        "ldp-obi",
    ]
    final = [run["regret"]["mean"] for run in report["runs"]]
    assert final[0] < final[1] < 0.2 * final[2] < 0.2 * 0.5 * final[3]
    assert (tmp_path / report["files"][0]).exists()


def test_help_does_not_import_the_heavy_libraries() -> None:
    code = (
        "import sys; from tacit.cli.main import main\n"
        "sys.argv = ['tacit', '--help']\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([m for m in ('numba', 'numpy', 'scipy', 'pandas', 'matplotlib', 'gymnasium')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_ctrl_c_keeps_what_was_done(tmp_path: Path) -> None:
    began = time.perf_counter()
    short = tacit_command("run", "random-mdp", "psrl", "--episodes", "10", "--seeds", "2")
    subprocess.run(short, capture_output=True, check=True)
    starting = time.perf_counter() - began  # on this machine, as busy as it is
    words = ("run", "random-mdp", "psrl", "--episodes", "1e10", "--seeds", "2", "--json")
    process = subprocess.Popen(
        tacit_command(*words, "--out", str(tmp_path / "run")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    time.sleep(3 + 2 * starting)
    assert process.poll() is None, process.communicate()[1]
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in err
    report = json.loads(out)
    assert report["interrupted"] and 0 < report["episodes"] < 1e10
    saved = tacit.Result.load(tmp_path / "run")
    assert saved.interrupted and saved.completed == report["episodes"]
    assert np.isfinite(saved.regret).all()


def test_guarantee_prints_noise_truth_and_forecast(call) -> None:
    words = ("guarantee", "river-swim", "ldp-obi", "--epsilon", "1", "--episodes", "1e5")
    done = call(*words)
    assert done.status == 0
    for text in ("(1, 0)-differential privacy, local", "visits scale 118", "2,784,800 for 0.1"):
        assert text in done.out
    report = json.loads(call(*words, "--json").out)
    assert report["guarantee"]["epsilon"] == pytest.approx(1.0)
    assert report["guarantee"]["simulated"] is False
    assert report["forecast"]["users"] == 100_000
    assert "Noise: none" in call("guarantee", "river-swim", "psrl").out


def test_private_runs_report_their_guarantee(call) -> None:
    done = call(
        *("run", "random-mdp", "ldp-obi", "--epsilon", "2", "--episodes", "50"),
        *("--calibration", "paper", "--json"),
    )
    said = json.loads(done.out)["guarantee"]
    assert said["requested_epsilon"] == 2.0 and said["epsilon"] == pytest.approx(5 / 3)
    assert said["simulated"] is True and said["model"] == "local"
    twice = call("run", "random-mdp", "ldp-obi", "--epsilon", "2", "-A", "epsilon=3")
    assert twice.status == 2 and "epsilon is given twice" in twice.err


def test_audit(call) -> None:
    words = ("audit", "random-mdp", "ldp-obi", "--epsilon", "2", "--trials", "8000")
    done = call(*words)
    assert done.status == 0 and "verdict: consistent" in done.out and "secure noise" in done.out
    report = json.loads(call(*words, "--json").out)
    assert report["claimed_epsilon"] == pytest.approx(2.0) and report["verdict"] == "consistent"
    assert call("audit", "random-mdp", "uniform").status == 2
    assert "trials = 5" in call("audit", "random-mdp", "psrl", "--trials", "5").err


def test_a_refuted_claim_exits_with_status_1(call, monkeypatch) -> None:
    from corpus.tabular import HalvedNoise
    from tacit.agents import obi

    monkeypatch.setattr(obi, "LocalAdditive", HalvedNoise)
    done = call("audit", "random-mdp", "ldp-obi", "--epsilon", "3", "--trials", "20000", "--json")
    assert done.status == 1 and json.loads(done.out)["verdict"] == "violated"


BITS = ("-A", "randomizer=randomized-response")
BOUNDED = ("--delta", "0.1", "-A", "randomizer=bounded")


@pytest.mark.parametrize(
    ("words", "epsilon"),
    [
        (("ldp-obi", "--epsilon", "2", *BITS), 2.0),
        (("ldp-obi", "--epsilon", "2", "--calibration", "paper", *BITS), 2 * 10 / 12),
        (("ldp-obi", "--epsilon", "2", *BOUNDED), 2.0),
        (("ldp-obi", "--epsilon", "20", "--calibration", "paper", *BOUNDED), None),
        (("ldp-obi", "--epsilon", "2", "-A", "width=tight"), 2.0),
        (("ldp-psrl", "--epsilon", "2", "--calibration", "paper"), 2 * 14 / 16),
        (("obi",), None),
    ],
)
def test_every_tabular_agent_from_the_command_line(call, words, epsilon) -> None:
    said = json.loads(call("guarantee", "random-mdp", *words, "--episodes", "50", "--json").out)
    ran = json.loads(call("run", "random-mdp", *words, "--episodes", "50", "--json").out)
    for guarantee in (said["guarantee"], ran["guarantee"]):
        assert guarantee["epsilon"] == (
            None if epsilon is None else pytest.approx(epsilon, rel=1e-4)
        )
    text = call("guarantee", "random-mdp", *words, "--episodes", "50").out
    assert ("NO PRIVACY" in text) == (epsilon is None)
    if "ldp-obi" in words:
        assert ran["agent"]["parameters"]["width"] in ("paper", "corrected", "tight")
        assert "at episode" in ran["agent"]["notes"][0]


def test_audits_say_what_is_exact_and_what_cannot_be_audited(call) -> None:
    audit = ("audit", "random-mdp", "ldp-obi", "--epsilon", "2", "--trials", "1000")
    assert (
        "exact: the probabilities of what one person sends give epsilon 2"
        in call(*audit, *BITS).out
    )
    assert "not audited: this noise has no exact sampler" in call(*audit, *BOUNDED).out
