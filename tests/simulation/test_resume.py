"""What was interrupted goes on bit for bit, by whatever run, and whatever ended it."""

import json
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import tacit
from golden.cases import cases, problem
from golden.record import FOLDER, recorded
from patience import until
from tacit.errors import InvalidInput
from tacit.forecast import bind
from tacit.simulation import resume
from tacit.simulation.checkpoints import checkpoints
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.runs.stepwise import StepwiseRun

ROOT, USERS = 5, 60
OTHERS = {
    "pooled dp-lsvi-batch epsilon=5.0",
    "pooled tacit-local epsilon=2.0 batch=7",
    "mixture private-linopt-vi epsilon=50.0 counter=honaker",
    "mixture private-linopt-vi epsilon=50.0 counter=blt",
    "mixture ldp-ucrl-vtr epsilon=20.0 every=5",
    "linear lsvi-ucb++ bonus_scale=0.05",
    "pooled shuffle-obi epsilon=3.0 batch=12 delta=0.01 steps=own",
}
FIT = {name for name, said in recorded(FOLDER / "digests.json").items() if "fits" not in said}
CASES = {
    name: case for name, case in cases().items() if name in FIT and (case.plain or name in OTHERS)
}


def made(case, number: int, *, fast: bool):
    truth = problem(case.problem)
    bound = bind(truth, case.make_agent(), USERS, case.reveal)
    given = truth, bound, ROOT, number, checkpoints(USERS, 1)
    return (compiled_run(*given) if fast else None) or StepwiseRun(*given, threading.Event())


def through_a_file(state, folder):
    kept = resume.Progress(folder, {})
    kept.save(3, state)
    return kept.load(3)


@pytest.mark.parametrize("name", CASES)
def test_a_run_goes_on_as_if_it_had_never_stopped(name, tmp_path) -> None:
    whole = made(CASES[name], 1, fast=True)
    whole.advance(USERS)
    whole.conclude()
    done, run = 0, made(CASES[name], 1, fast=True)
    for upto in (0, 1, 23, 59, USERS):
        run.advance(upto - done)
        done, state = upto, through_a_file(resume.state(run), tmp_path)
        run = made(CASES[name], 1, fast=True)
        resume.restore(run, state)
    run.conclude()
    assert np.array_equal(run.score.regret, whole.score.regret)
    assert np.array_equal(run.score.reward, whole.score.reward)
    (one, users), (other, again) = whole.final, run.final
    assert one.policy == other.policy and users == again and one.version == other.version
    assert one.context.keys() == other.context.keys()
    for part, array in one.context.items():
        assert other.context[part].tobytes() == array.tobytes()


def same(one: tacit.Result, other: tacit.Result) -> bool:
    arrays = ("episodes", "regret", "reward")
    return (
        all(np.array_equal(getattr(one, part), getattr(other, part)) for part in arrays)
        and one.policies == other.policies
        and one.policy == other.policy
        and not one.interrupted
        and not other.interrupted
    )


def test_a_stopped_simulation_goes_on(tmp_path) -> None:
    stop = threading.Event()

    def enough(done: int, regret: float) -> None:
        if done > 0:
            stop.set()

    given = "river-swim", tacit.agent("tacit-joint", epsilon=1.0), 200_000
    whole = tacit.simulate(*given, seeds=3)
    part = tacit.simulate(*given, seeds=3, resume=tmp_path, stop=stop, progress=enough)
    assert part.interrupted and part.policies == () and 0 < part.completed < 200_000
    with pytest.raises(InvalidInput, match="interrupted"):
        part.policy  # noqa: B018
    rest = tacit.simulate(*given, seeds=3, resume=tmp_path, workers=2)
    assert same(whole, rest)
    again = tacit.simulate(*given, seeds=3, resume=tmp_path)  # nothing is left to be done
    assert same(whole, again)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"episodes": 400}, "episodes = 300, not 400"),
        ({"seeds": 3}, "seeds = 2, not 3"),
        ({"seed": 1}, "seed = 0, not 1"),
        ({"checkpoints": 7}, "checkpoints"),
        ({"agent": tacit.agent("ucb-vi")}, "agent"),
        ({"agent": tacit.agent("psrl", alpha0=0.5)}, "agent"),
        ({"problem": tacit.problem("river-swim", states=5)}, "problem"),
        ({"reveal": ["reward"]}, "revealed"),
        ({"compiled": False}, "compiled = true, not false"),
    ],
)
def test_another_configuration_is_refused_in_a_sentence(changed, said, tmp_path) -> None:
    given = {"problem": "river-swim", "agent": "psrl", "episodes": 300, "seeds": 2}
    tacit.simulate(**given, resume=tmp_path)
    with pytest.raises(InvalidInput, match=said) as refused:
        tacit.simulate(**{**given, **changed}, resume=tmp_path)
    assert "choose another folder" in str(refused.value)


def test_a_damaged_file_is_named(tmp_path) -> None:
    given = "river-swim", "psrl", 50
    tacit.simulate(*given, resume=tmp_path)
    file = tmp_path / "0.npz"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(InvalidInput, match=r"0\.npz cannot be read; delete it"):
        tacit.simulate(*given, resume=tmp_path)
    file.unlink()
    assert same(tacit.simulate(*given), tacit.simulate(*given, resume=tmp_path))


KILLED = """
import sys, threading
import tacit
from tacit.simulation import resume as saving
saving.SECONDS = 0.02
save, saved = saving.Progress.save, set()

def held(self, number, arrays):
    save(self, number, arrays)
    if number in saved:
        threading.Event().wait()  # to be killed, and never at the end before that
    saved.add(number)

saving.Progress.save = held
tacit.simulate("river-swim", tacit.agent({agent!r}), {users}, 2, workers=2, resume=sys.argv[1])
"""


@pytest.mark.parametrize("agent", ["psrl", "lsvi-ucb"])  # a fused loop, and the driver itself
def test_a_killed_process_loses_only_what_it_did_last(agent, tmp_path) -> None:
    users = 150_000 if agent == "psrl" else 1500
    script = KILLED.format(agent=agent, users=users)
    process = subprocess.Popen([sys.executable, "-c", script, tmp_path], env=os.environ)
    kept = [tmp_path / f"{run}.npz" for run in (0, 1)]
    until(lambda: process.poll() is not None or all(file.exists() for file in kept))
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = [int(np.load(file)["at"][0]) for file in kept]
    assert all(0 < episodes < users for episodes in done)
    rest = tacit.simulate("river-swim", agent, users, 2, resume=tmp_path)
    assert same(tacit.simulate("river-swim", agent, users, 2), rest)


def test_what_cannot_be_stored_begins_anew(tmp_path) -> None:
    agent = tacit.agent("dp-lsvi-ucb++", epsilon=1.0, calibration="paper", reuse_noise=True)
    given = "synthetic-linear", agent, 30
    whole = tacit.simulate(*given, resume=tmp_path)
    assert not (tmp_path / "0.npz").exists()
    assert same(whole, tacit.simulate(*given, resume=tmp_path))


def test_the_folder_holds_plain_arrays_only(tmp_path) -> None:
    tacit.simulate("remap-walk", tacit.agent("private-linopt-vi", epsilon=5.0), 30, resume=tmp_path)
    with np.load(tmp_path / "0.npz", allow_pickle=False) as kept:
        assert {kept[name].dtype.kind for name in kept.files} <= set("fibU")
    said = json.loads((tmp_path / resume.CONFIGURATION).read_text())
    assert said["agent"]["name"] == "private-linopt-vi"
