"""The framework: parts are computed once, interruptions lose one part, everything is written."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tacit
from patience import PATIENCE
from tacit.errors import InvalidInput, UnknownName
from tacit.experiment_spec import ExperimentSpec
from tacit_lab.figures import draw
from tacit_lab.figures.draw import canvas, rate_panel, regret_panel
from tacit_lab.figures.figure import Claim, Curve, Figure, Measurement, Named, Size
from tacit_lab.figures.reproduction import figures, find, reproduce
from tacit_lab.sweep import pool
from tacit_lab.sweep import task as tasks

TINY = Size(episodes=300, instances=2, runs=2)


OBI = tacit.agent("ldp-obi", epsilon=2.0, calibration="paper")
CALLS: list[int] = []


def squares(n: int) -> dict[str, np.ndarray]:
    CALLS.append(n)
    return {"squares": np.arange(n) ** 2}


def parts(size: Size) -> list:
    problems = tuple(Named("random-mdp", {"seed": seed}) for seed in range(1, size.instances + 1))
    private = Named("ldp-obi", {"epsilon": 2.0, "calibration": "paper"})
    return [
        Curve("psrl", "PSRL", Named("psrl"), problems, size),
        Curve("obi", "LDP-OBI", private, problems, size),
        Measurement("squares", "squares", squares, {"n": 5}),
    ]


def picture(evidence):
    drawing, (left, right) = canvas(2, "toy")
    regret_panel(left, list(evidence.curves.values()), "regret")
    rate_panel(right, list(evidence.curves.values()), "rate", legend=False)
    return drawing


def learns(evidence) -> Claim:
    final = {key: float(runs.final.mean()) for key, runs in evidence.curves.items()}
    return Claim("privacy costs", "obi > psrl", final, final["obi"] > final["psrl"], "it does not")


def impossible(evidence) -> Claim:
    return Claim("two is three", "3", {"two": 2.0, "none": float("inf")}, False, "arithmetic")


TOY = Figure(
    id="toy/figure-0",
    title="a toy",
    full=Size(episodes=10**10, instances=2, runs=1, takes="for ever"),
    quick=TINY,
    parts=parts,
    draw=picture,
    claims=(learns, impossible),
    notes=lambda size: ["a note"],
)


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("figures")
    reproduce(TOY, size="quick", out=folder)
    return folder


def test_the_json_contract_and_the_files(out: Path) -> None:
    done = reproduce(TOY, size="quick", out=out)
    folder = out / "toy" / "figure-0" / "quick"
    assert [path.name for path in done.files] == ["figure.png", "claims.json", "manifest.json"]
    assert all(path.parent == folder and path.stat().st_size > 100 for path in done.files)
    report = json.loads((folder / "claims.json").read_text())
    assert report == done.to_json()
    assert report["figure"] == "toy/figure-0" and report["scale"] == "quick"
    assert report["size"] == {"episodes": 300, "instances": 2, "runs": 2}
    assert report["notes"] == ["a note"]
    first, second = report["claims"]
    assert set(first) == {"claim", "expected", "measured", "holds", "why"}
    assert second["holds"] is False and second["why"] == "arithmetic"
    assert second["measured"] == {"two": 2.0, "none": None}
    assert report["files"] == [str(path) for path in done.files]
    curve = report["curves"][1]
    assert curve["label"] == "LDP-OBI: local epsilon 1.67 (asked for 2)"
    assert [len(row["regret"]) for row in curve["by_problem"]] == [2, 2]
    assert [row["problem"]["parameters"]["seed"] for row in curve["by_problem"]] == [1, 2]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {"tacit", "versions", "machine", "seeds", "timing", "size"} <= set(manifest)
    assert manifest["seeds"]["obi"] == [0, 1] and manifest["measurements"] == {"squares": {"n": 5}}
    assert manifest["timing"]["seconds_of_all_parts"] > 0


def test_bounds_are_drawn_on_request(out: Path) -> None:
    done = reproduce(TOY, size="quick", out=out, bounds=True)
    assert done.files[-1].name == "bounds.png" and done.files[-1].stat().st_size > 100
    (axes,) = draw.bounds("toy", done.evidence).axes
    dashed = [line for line in axes.get_lines() if line.get_linestyle() == "--"]
    dotted = [line for line in axes.get_lines() if line.get_linestyle() == ":"]
    assert len(dashed) == len(dotted) == 2  # one per curve
    first = tacit.problem("random-mdp", seed=1)
    for line, agent in zip(dashed, (tacit.agent("psrl"), OBI), strict=True):
        stated = tacit.bound(first, agent, 300)
        assert line.get_xdata()[-1] == 300 and line.get_ydata()[-1] == pytest.approx(stated.upper)
    assert dotted[0].get_ydata()[-1] == pytest.approx(stated.worst)


def test_the_curves_are_those_of_simulate(out: Path) -> None:
    runs = reproduce(TOY, size="quick", out=out).evidence.curve("psrl")
    for i, result in enumerate(runs.results):
        problem = tacit.problem("random-mdp", seed=i + 1)
        same = tacit.simulate(problem, tacit.agent("psrl"), 300, 2, seed=i)
        assert np.array_equal(result.regret, same.regret)
    assert runs.by_problem.shape == (2, len(runs.episodes)) and runs.runs.shape[0] == 4
    assert runs.mean[-1] == pytest.approx(np.mean([r.regret[:, -1].mean() for r in runs.results]))


def test_what_is_finished_is_never_computed_again(out: Path, monkeypatch) -> None:
    def never(*args, **kwargs):
        raise AssertionError("computed again")

    monkeypatch.setattr(ExperimentSpec, "make", never)
    before = len(CALLS)
    again = reproduce(TOY, size="quick", out=out, workers=1)
    assert again.evidence.arrays("squares")["squares"].tolist() == [0, 1, 4, 9, 16]
    assert len(CALLS) == before
    with pytest.raises(AssertionError, match="computed again"):
        reproduce(TOY, size=dataclasses.replace(TINY, runs=1), out=out)


def test_an_interruption_loses_the_part_in_progress_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch
) -> None:
    real, calls = ExperimentSpec.make, []

    def flaky(spec):
        calls.append(spec.agent.name)
        if spec.agent.name == "ldp-obi" and len(calls) < 4:
            raise KeyboardInterrupt
        return real(spec)

    monkeypatch.setattr(ExperimentSpec, "make", flaky)
    with pytest.raises(KeyboardInterrupt):
        reproduce(TOY, size="quick", out=tmp_path, workers=1)
    assert not (tmp_path / "toy" / "figure-0" / "quick" / "claims.json").exists()
    before = calls.count("psrl")
    done = reproduce(TOY, size="quick", out=tmp_path, workers=1)
    assert before == calls.count("psrl") == 2
    fresh = reproduce(TOY, size="quick", out=tmp_path / "fresh", workers=2)
    for key in ("psrl", "obi"):
        assert np.array_equal(done.evidence.curve(key).runs, fresh.evidence.curve(key).runs)


def test_interrupted_runs_are_not_taken_for_finished_ones(tmp_path: Path, monkeypatch) -> None:
    """Ctrl-C while two threads simulate: they stop early, and nothing of them is stored."""
    real = pool.wait_for_threads
    began = time.monotonic()

    def interrupted(*args, **kwargs):
        if time.monotonic() - began > 1.0:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(pool, "wait_for_threads", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(TOY, out=tmp_path, workers=2)
    assert list((tmp_path / "parts").iterdir()) == []


KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from lab.papers.test_reproduce import TOY
from tacit_lab.figures.figure import Size
from tacit_lab.figures.reproduction import reproduce
import dataclasses

def parts(size):
    first, second, _ = TOY.parts(size)
    long = dataclasses.replace(size, episodes=10**10)
    return [first, dataclasses.replace(second, size=long)]

reproduce(dataclasses.replace(TOY, parts=parts), size="quick", out=sys.argv[2])
"""


def test_a_killed_process_leaves_finished_parts_only(tmp_path: Path) -> None:
    tests = Path(__file__).resolve().parents[2]
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tests), str(tmp_path)])
    kept = tasks.ResultStore(tmp_path / "parts")
    first, second, _ = parts(TINY)
    while not all(task in kept for task in first.tasks()):
        assert process.poll() is None
        time.sleep(0.05)
    process.kill()
    process.wait()
    for task in first.tasks():
        result = kept.result(task)
        assert result.completed == 300 and result.regret.shape[0] == 2
    assert not any(task in kept for task in second.tasks())


def test_two_writers_of_one_part_do_not_disturb_each_other(tmp_path: Path) -> None:
    kept = tasks.ResultStore(tmp_path / "parts")
    task, other = parts(TINY)[0].tasks()
    for _ in range(2):
        kept.keep(task, task.run())
    assert [path.name for path in kept.folder.iterdir()] == [f"{task.digest}.json"]
    assert other not in kept


def test_the_name_of_a_part_is_made_of_all_that_determines_it(monkeypatch) -> None:
    curve, measurement = parts(TINY)[1:]

    def change(**fields) -> Curve:
        return dataclasses.replace(curve, **fields)

    def name(curve: Curve) -> str:
        return dataclasses.replace(curve).tasks()[0].digest

    before = name(curve)
    assert before == name(change(key="k", label="l"))
    others = [
        change(agent=Named("ldp-obi", {"epsilon": 3.0})),
        change(agent=Named("psrl")),
        change(problems=(Named("random-mdp", {"seed": 5}),)),
        change(problems=(Named("river-swim", {"seed": 1}),)),
        change(size=dataclasses.replace(TINY, episodes=301)),
        change(size=dataclasses.replace(TINY, runs=3)),
        change(seed=1),
    ]
    names = {before, curve.tasks()[1].digest, *map(name, others)}
    assert len(names) == len(others) + 2
    first = measurement.digest
    assert first != dataclasses.replace(measurement, parameters={"n": 6}).digest
    monkeypatch.setattr(tasks, "sources", lambda: "another version")
    assert name(curve) != before and measurement.digest != first


def test_progress_is_told_in_order_and_ends_complete(tmp_path: Path) -> None:
    steps = []
    reproduce(TOY, size="quick", out=tmp_path, watch=steps.append)
    assert all(0 <= step.share <= 1 and step.parts == 3 for step in steps)
    assert [step.part for step in steps] == sorted(step.part for step in steps)
    assert (steps[-1].part, steps[-1].share) == (2, 1.0)


def test_mistakes_are_told(tmp_path: Path) -> None:
    twice = dataclasses.replace(TOY, parts=lambda size: 2 * parts(size)[:1])
    with pytest.raises(InvalidInput, match="different keys"):
        reproduce(twice, size="quick", out=tmp_path)
    bad = dataclasses.replace(parts(TINY)[0], agent=Named("prsl"))
    with pytest.raises(UnknownName, match="did you mean 'psrl'"):
        reproduce(dataclasses.replace(TOY, parts=lambda size: [bad]), size="quick", out=tmp_path)
    with pytest.raises(InvalidInput, match="workers = 0"):
        reproduce(TOY, size="quick", out=tmp_path, workers=0)
    with pytest.raises(UnknownName, match="did you mean 'tabular-ldp/figure-1'"):
        find("tabular-ldp/figur-1")
    with pytest.raises(UnknownName, match="did you mean 'tabular-ldp/table-1'"):
        find("table-1")
    with pytest.raises(UnknownName, match="known: .*tabular-ldp/figure-1"):
        reproduce("xyz", out=tmp_path)


def test_runs_can_be_stopped_from_another_thread() -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    study = tacit.Experiment(problem="random-mdp", agent="uniform", episodes=10**12)
    result = study.run(stop=stop)
    assert result.interrupted and result.completed < 10**12


def test_ids_are_typeable_and_unique() -> None:
    ids = [figure.id for figure in figures]
    assert len(set(ids)) == len(ids)
    assert all(figure.id == f"{figure.paper}/{figure.id.split('/')[1]}" for figure in figures)
    assert all(c.islower() or c.isdigit() or c in "-/" for c in "".join(ids))


def command(*words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("tacit")), *words]


def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command("reproduce", "tabular-ldp/figure-1", "--out", str(tmp_path), "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    while not (tmp_path / "parts").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and out == "" and "Traceback" not in err
    assert "the same command goes on" in err and err.count("\n") == 1
