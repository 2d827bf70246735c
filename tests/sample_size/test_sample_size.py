"""``tacit.sample_size``: answers that are known, and what it says where there is none."""

import dataclasses
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import tacit
from tacit.agents.reference import every_tenth
from tacit.errors import InvalidInput
from tacit.learner import BoundAgent
from tacit.policies.tabular import TabularPolicy, uniform_policy
from tacit.privacy import Exact
from tacit.publication import Publication
from tacit.sample_size import Limits, SampleSize, random_experiments, sample_size
from tacit.sample_size.answer import SizeAnswer, SizeMeasurement, about, extrapolate
from tacit.sample_size.search import _sizes
from tacit.statistics.counts import VisitCounts
from tacit.task.task import Task

ARMS = tacit.TabularMDP(np.ones((1, 2, 1)), [[0.0, 1.0]], horizon=1, name="two arms")


class Switch:
    """Uniform actions until so many users came, then the better arm."""

    def __init__(self, after: float) -> None:
        self.after = after

    def plan(self, task, release, ask, previous, streams) -> Publication:
        right = TabularPolicy(np.ones((1, 1), dtype=np.int64))
        version = 0 if previous is None else previous.version + 1
        return Publication(
            version, right if release.users >= self.after else uniform_policy(1, 1, 2)
        )


@dataclass(frozen=True)
class Known(tacit.Agent):
    """Knows the better arm after ``after / epsilon`` users: the answer is known too."""

    name: ClassVar[str] = "known"
    epsilon: float = 1.0
    after: float = 600.0
    most: int = 10**9

    def bind(self, task: Task) -> BoundAgent:
        if task.users > self.most:
            raise InvalidInput(f"at most {self.most}")
        counts = VisitCounts(task)
        planner = Switch(self.after / self.epsilon)
        return BoundAgent(task, counts, Exact(counts, task), planner, every_tenth)


def named(agent: Any) -> Any:
    """An agent, or the one of that name, which is asked about at one epsilon or at none."""
    private = isinstance(agent, str) and agent.startswith("tacit-")
    return tacit.agent(agent, epsilon=1.0) if private else agent


def quick(problem: Any = ARMS, agent: Any = None, **more: Any) -> SampleSize:
    most, seconds = more.pop("most", 3000), more.pop("seconds", None)
    runs, seed, task = more.pop("runs", 2), more.pop("seed", 0), more.pop("task", None)
    learner = named(agent) or Known()
    if isinstance(problem, Task):
        study: Any = random_experiments(problem, learner, runs, seed)
    else:
        study = tacit.Experiment(
            problem=problem, agent=learner, episodes=1, runs=runs, seed=seed, task=task
        )
    return sample_size(study, limits=Limits(most, seconds), **more)


def gaps(found: SampleSize) -> list[float]:
    """What the best policy of every run earns above the baseline."""
    problems = [each.problem for each in found.experiments]
    return [problem.optimal_value() - problem.baseline()[1] for problem in problems]


def test_the_number_of_users_is_found_where_it_is_known() -> None:
    plan = quick(epsilons=[1.0, 4.0], people=500)
    four, one = plan.answers
    assert (four.epsilon, one.epsilon) == (4.0, 1.0)
    assert (four.insufficient, four.sufficient) == (100, 300)  # it switches after 150
    assert (one.insufficient, one.sufficient) == (500, 1000)  # after 600; 500 was asked about
    assert four.words() == "100 to 300" and one.words() == "500 to 1,000"
    assert plan.smallest_epsilon == 4.0 and plan.warning == ""
    assert plan.verdict == (
        "To close 50% of the gap with 500 users: epsilon 4 is enough; epsilon 1 is not enough."
    )
    assert one.measured[-1].gap_closed == (1.0, 1.0) and one.measured[0].gap_closed == (0.0, 0.0)


def test_what_is_not_reached_is_measured_and_what_is_guessed_says_so() -> None:
    plan = quick(epsilons=[1.0, 0.1], most=3000)
    small = plan.answers[1]
    assert small.sufficient is None and small.insufficient == small.last == 3000
    assert small.words() == "not below 3,000" and small.extrapolated == 100_000
    assert small.note() == "extrapolated, not simulated: about 100,000"
    assert plan.verdict == plan.warning == ""  # no population was asked about
    asked = quick(epsilons=[0.1], people=300, most=300)
    assert asked.smallest_epsilon is None and "epsilon 0.1 is not enough" in asked.warning


def test_a_hundred_times_the_users_and_no_closer_is_said() -> None:
    (only,) = quick(epsilons=[0.01], most=10_000).answers
    assert only.flat_since == 100 and only.note() == "no closer than with 100"


def test_never_is_said_where_it_is_certain() -> None:
    (idle,) = quick(agent="uniform", most=300).answers
    assert (idle.words(), idle.note()) == ("never", "uniform does not learn")
    alike = tacit.TabularMDP(np.ones((1, 2, 1)), [[0.5, 0.5]], horizon=1)
    (flat,) = quick(alike, epsilons=[1.0]).answers
    assert flat.words() == "never" and "already the best" in flat.note() and not flat.measured
    (best,) = quick(agent="optimal", most=300).answers
    assert best.words() == "100 or fewer" and best.note() == ""


def test_a_real_agent_needs_fewer_users_with_more_epsilon() -> None:
    noisy = tacit.TabularMDP(
        np.ones((1, 2, 1)), [[0.2, 0.8]], horizon=1, rewards="bernoulli", name="arms"
    )
    plan = quick(noisy, "tacit-joint", epsilons=[8.0, 0.005], runs=4, most=1000)
    large, small = plan.answers
    assert large.sufficient is not None and small.sufficient is None
    assert small.measured[-1].interval.value < large.measured[-1].interval.value
    assert small.insufficient >= large.insufficient


def test_the_same_seed_gives_the_same_plan() -> None:
    def said(**more: Any) -> dict[str, Any]:
        report = quick(agent="tacit-joint", epsilons=[2.0], most=300, **more).to_json()
        assert report.pop("timing")["seconds"] > 0
        return report

    assert said(workers=1) == said(workers=2)
    assert said(seed=1) != said()


def test_without_a_problem_random_ones_of_the_size_are_simulated() -> None:
    task = Task("tabular", 3, {"states": 4, "actions": 2}, homogeneous=False, users=1)
    plan = quick(task, "optimal", runs=3, most=100)
    problems = [each.problem for each in plan.experiments]
    assert len({p.P.tobytes() for p in problems}) == 3  # type: ignore[attr-defined]
    assert all(p.P.shape == (3, 4, 2, 4) for p in problems)  # type: ignore[attr-defined]
    assert all(gap >= 0.03 for gap in gaps(plan))
    asked = plan.experiments[0].with_(agent="psrl", episodes=50)
    assert asked.bound.task == Task(
        "tabular", 3, {"states": 4, "actions": 2}, homogeneous=False, users=50
    )
    assert "3 random problems of 4 states, 2 actions, 3 steps" in plan.method
    again = [each.problem for each in quick(task, "optimal", runs=3, most=100).experiments]
    assert all(np.array_equal(a.P, b.P) for a, b in zip(problems, again, strict=True))  # type: ignore[attr-defined]


def test_random_problems_keep_what_the_task_declares_of_its_table() -> None:
    known = {"terminal": np.array([True, False, False]), "initial": np.array([0.0, 0.5, 0.5])}
    known["allowed"] = np.array([[True, True], [True, True], [False, True]])
    task = Task("tabular", 3, {"states": 3, "actions": 2}, True, users=1, known=known)
    for told in (task, dataclasses.replace(task, known={"terminal": known["terminal"]})):
        _, second = random_experiments(told, "psrl", 2)
        bound = second.with_(episodes=50).bound
        assert bound.task == dataclasses.replace(told, users=50)


def test_a_task_beside_a_problem_is_what_the_learner_is_told() -> None:
    task = Task("tabular", 1, {"states": 1, "actions": 2}, True, users=1, participations=3)
    plan = quick(task=task, epsilons=[4.0])
    assert plan.experiments[0].with_(episodes=70).bound.task.participations == 3
    assert plan.simulated == "two arms, 2 runs"


def test_an_agent_that_takes_no_more_users_says_why() -> None:
    (only,) = quick(agent=Known(most=300), epsilons=[0.5]).answers
    assert only.last == 300 and only.note() == "refuses 1,000 users: at most 300"
    with pytest.raises(InvalidInput, match="at most 50"):
        quick(agent=Known(most=50), epsilons=[0.5])


def test_stopped_it_keeps_what_was_measured() -> None:
    stop = threading.Event()

    def watch(epsilon: float | None, users: int, done: int) -> None:
        if users == 1000:
            stop.set()

    plan = quick(agent=Known(after=1e9), epsilons=[1.0], progress=watch, stop=stop)
    assert plan.interrupted and plan.answers[0].last in (300, 1000)  # cut short, or just done


def test_time_ends_it_without_harm() -> None:
    plan = quick(agent=Known(after=1e9), epsilons=[1.0], most=10**9, seconds=0.5)
    assert not plan.interrupted and 100 <= plan.answers[0].last < 10**9
    assert plan.answers[0].insufficient == plan.answers[0].last


def test_sizes_grow_and_meet_the_population() -> None:
    assert list(_sizes(None, 3000)) == [100, 300, 1000, 3000]
    assert list(_sizes(500, 2000)) == [100, 300, 500, 1000, 2000]
    assert list(_sizes(40, 60)) == [40, 60]
    assert list(_sizes(300, 300)) == [100, 300]


def test_confidence_decides() -> None:
    sure, open_ = (
        SizeMeasurement(1000, (0.6, 0.7, 0.65), 1.0),
        SizeMeasurement(300, (0.0, 1.0, 0.5), 1.0),
    )
    low = SizeMeasurement(100, (0.1, 0.0, 0.05), 1.0)
    answer = SizeAnswer(1.0, 0.5, (low, open_, sure))
    assert (answer.insufficient, answer.sufficient) == (100, 1000)
    assert SizeAnswer(1.0, 0.5, (low, open_)).words() == "not below 100"
    assert SizeAnswer(1.0, 0.5, (low, open_)).note() == "not decided at 300"
    assert SizeAnswer(1.0, 0.5, (open_,)).words() == "not decided up to 300"
    assert extrapolate([answer, SizeAnswer(0.5, 0.5, (low,))]) == {0.5: 4000}
    assert about(999_999_999) == "about 1 billion"


def test_bad_questions_are_explained() -> None:
    for more, words in (
        ({"share": 1.5}, "share = 1.5"),
        ({"runs": 1}, "runs = 1"),
        ({"most": None}, "seconds = None needs most"),
        ({"epsilons": []}, "epsilons is empty"),
        ({"epsilons": [0.0]}, "epsilon = 0,"),
        ({"people": 5}, "people = 5"),
        ({"agent": "psrl", "epsilons": [1.0]}, "psrl takes no epsilon"),
        ({"problem": "known", "agent": "psrl"}, "known"),
        ({"problem": tacit.environment("FrozenLake-v1", rewards=(0, 1))}, "only played"),
    ):
        with pytest.raises(tacit.TacitError, match=words):
            quick(**more)  # type: ignore[arg-type]
    mixture = Task(
        "tabular", 2, {"states": 2, "actions": 2}, True, 1, {"features": np.ones((2, 2, 2, 1))}
    )
    with pytest.raises(InvalidInput, match="tables without declared features"):
        quick(mixture)


def test_lines_hold_at_80_columns_and_a_plot_is_drawn(tmp_path: Path) -> None:
    plan = quick(epsilons=[1.0, 0.1], people=500)
    table = str(plan).split("\n")[:4]
    assert table[1].split() == ["epsilon", "users", "closed", "with"]
    assert max(map(len, table)) <= 80 and "500 to 1,000" in table[2]
    file = plan.plot(tmp_path / "plan.svg")
    assert "not below this (simulated)" in file.read_text() or file.stat().st_size > 10_000
    with pytest.raises(InvalidInput, match="nothing to plot"):
        quick(agent="uniform", most=100).plot(tmp_path / "none.png")


def test_the_question_can_still_be_asked_after_its_package_was_imported() -> None:
    code = "import tacit, tacit.sample_size; tacit.SampleSize; print(callable(tacit.sample_size))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "True\n"
