"""Run one case by the compiled loop and by the driver, and digest everything that comes out."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from golden.cases import EPISODES, Case, problem
from golden.digests import (
    array_bytes,
    digest,
    json_digest,
    named_bytes,
    numbers_and_words,
    publication_bytes,
)
from tacit.agents.base import Agent
from tacit.errors import InvalidInput
from tacit.experiment import Experiment, bind
from tacit.learner import BoundAgent, drive
from tacit.privacy import SimulatedNoise
from tacit.release import Release
from tacit.simulation.checkpoints import checkpoints
from tacit.simulation.dispatch import compiled_run
from tacit.streams import planner_streams, stream

ROOT = 20240607
SEEDS = 2
IRREGULAR = (1, 2, 3, 11, 1, 7, 29, 5)
"""Chunks in which a loop is advanced, again and again, besides one user at a time."""


def measure(case: Case, episodes: int = EPISODES) -> dict[str, str]:
    """Digests of one case by name, or what says that the agent refuses the problem."""
    truth, agent = problem(case.problem), case.make_agent()
    try:
        bound = bind(truth, agent, episodes, case.reveal)
    except InvalidInput:
        return {"fits": "no"}
    driven = [_driven(truth, bound, run) for run in range(SEEDS)]
    stepwise = _curves(case, episodes, compiled=False, workers=1)
    _same(stepwise, [d["curves"] for d in driven], "simulate(compiled=False) and the driver")
    found = {
        **_guarantee(agent, bound),
        "driver regret": digest(array_bytes(curve[0]) for curve in stepwise),
        "driver reward": digest(array_bytes(curve[1]) for curve in stepwise),
        "driver publications": digest(itertools.chain(*(d["publications"] for d in driven))),
        "driver releases": digest(itertools.chain(*(d["releases"] for d in driven))),
    }
    grid = checkpoints(episodes, 1)
    if compiled_run(truth, bound, ROOT, 0, grid) is None:
        return {**found, "loop": "none"}
    loop = _curves(case, episodes, compiled=True, workers=1)
    two = _curves(case, episodes, compiled=True, workers=2, points="log")
    at = checkpoints(episodes) - 1
    _same([curve[:, at] for curve in loop], two, "one worker and two, at fewer checkpoints")
    released = []
    for run in range(SEEDS):
        one_by_one, parts = _released(truth, bound, run, episodes)
        _same([loop[run]], [one_by_one], "chunks of one user")
        released.append(parts)
        for chunks in ((episodes,), IRREGULAR):
            chunked = compiled_run(truth, bound, ROOT, run, grid)
            assert chunked is not None
            _advance(chunked, episodes, chunks)
            _same([loop[run]], [_score(chunked)], f"chunks of {chunks}")
    bits = all(
        np.array_equal(loop[run], stepwise[run]) and _within(released[run], driven[run]["blocks"])
        for run in range(SEEDS)
    )
    return {
        **found,
        "loop": "equal to the driver in bits" if bits else "equal to the driver in law",
        "loop regret": digest(array_bytes(curve[0]) for curve in loop),
        "loop reward": digest(array_bytes(curve[1]) for curve in loop),
        "loop releases": digest(itertools.chain(*released)),
    }


def _guarantee(agent: Agent, bound: BoundAgent) -> dict[str, str]:
    """What one participation is guaranteed, numbers and words apart, and what three are."""
    numbers, words = numbers_and_words(bound.guarantee.as_simulated().to_json())
    found = {"guarantee": json_digest(numbers), "guarantee in words": json_digest(words)}
    if bound.guarantee.model != "none":
        often = agent.bind(replace(bound.task, participations=3)).guarantee
        found["guarantee of three participations"] = json_digest(
            numbers_and_words(often.to_json())[0]
        )
    return found


def _curves(
    case: Case, episodes: int, compiled: bool, workers: int, points: int | str = 1
) -> list[np.ndarray]:
    """Regret and reward of every run, as the public function gives them."""
    result = Experiment(
        problem=problem(case.problem),
        agent=case.make_agent(),
        episodes=episodes,
        seed=ROOT,
        checkpoints=points,
        reveal=case.reveal,
        compiled=compiled,
        runs=SEEDS,
    ).run(workers=workers)
    assert not result.interrupted
    return [np.stack(pair) for pair in zip(result.regret, result.reward, strict=True)]


def _driven(truth: Any, bound: BoundAgent, run: int) -> dict[str, Any]:
    """The driver itself on the simulator's streams: the definition of every result."""
    users, gap = stream(ROOT, run, "users"), [0.0]
    regret, reward, publications = [0.0], [0.0], []

    def live(publication: Any) -> Any:
        trajectory = truth.rollout(publication.policy, users)
        earned = 0.0
        for r in trajectory.rewards:
            earned += float(r)
        regret.append(regret[-1] + gap[0])
        reward.append(reward[-1] + earned)
        return trajectory

    with _Overheard(bound) as heard:
        noise, streams = SimulatedNoise(stream(ROOT, run, "noise")), planner_streams(ROOT, run)
        for publication in drive(bound, live, noise, streams):
            publications.append(publication_bytes(publication))
            gap[0] = truth.optimal_value() - truth.value(publication.policy)
    return {
        "curves": np.array([regret[1:], reward[1:]]),
        "publications": publications,
        "releases": [_with_law(release) for release in heard.releases],
        "blocks": [_blocks(release) for release in heard.releases],
    }


class _Overheard:
    """Writes down what a privatizer releases, answers to questions included."""

    def __init__(self, bound: BoundAgent) -> None:
        self._privatizer: Any = bound.privatizer
        self.releases: list[Release] = []

    def __enter__(self) -> "_Overheard":
        release = self._privatizer.release

        def overheard(*given: Any) -> Release:
            self.releases.append(release(*given))
            return self.releases[-1]

        self._privatizer.release = overheard
        return self

    def __exit__(self, *exception: object) -> None:
        del self._privatizer.release


def _blocks(release: Release) -> bytes:
    """The released sums; one-cell reports also release how many users were asked, not a sum."""
    return named_bytes({name: b for name, b in release.blocks.items() if name != "first_users"})


def _with_law(release: Release) -> bytes:
    law = release.law
    noise = {name: law.variance(name) for name in release.blocks}
    head = f"{release.users} {release.source} {law.name} ".encode()
    return head + named_bytes(release.blocks) + named_bytes(noise)


def _released(
    truth: Any, bound: BoundAgent, run: int, episodes: int
) -> tuple[np.ndarray, list[bytes]]:
    """Curves of a loop advanced user by user, and every release its planner read, in order."""
    loop: Any = compiled_run(truth, bound, ROOT, run, checkpoints(episodes, 1))
    blank, seen = _buffers(loop, bound), []
    with _Overheard(bound) as heard:
        for user in range(episodes):
            loop.advance(1)
            if user < episodes - 1:  # on what the last user left nobody plans
                seen.append(_buffers(loop, bound))
    parts = [part for part, _ in itertools.groupby(seen) if part != blank]
    assert heard.releases or parts or not bound.statistic.layout.size
    collected = [_blocks(release) for release in heard.releases if release.blocks]
    return _score(loop), collected or parts


def _buffers(loop: Any, bound: BoundAgent) -> bytes:
    """The newest release of a fused loop, which keeps it in buffers: all that is known of them."""
    if hasattr(loop, "public"):
        return named_bytes(bound.privatizer.layout.views(loop.public.release))
    if hasattr(loop, "_released"):
        parts = loop._released.counts._asdict()
        shapes = {block.name: block.shape for block in bound.privatizer.layout.blocks}
        sums = {name: part.reshape(shapes[name]) for name, part in parts.items() if name in shapes}
        return named_bytes({**sums, "first": loop._released.first})
    return b""


def _score(run: Any) -> np.ndarray:
    return np.stack([run.score.regret, run.score.reward])


def _advance(run: Any, episodes: int, chunks: tuple[int, ...]) -> None:
    for chunk in itertools.cycle(chunks):
        left = episodes - int(run.score.at[0])
        if left == 0:
            return
        run.advance(min(chunk, left))


def _within(some: list[bytes], all_of_them: list[bytes]) -> bool:
    """Whether ``some`` occur among the others in their order; a loop skips what nobody plans on."""
    rest = iter(all_of_them)
    return all(any(part == other for other in rest) for part in some)


def _same(one: list[np.ndarray], other: list[np.ndarray], what: str) -> None:
    if not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True)):
        raise AssertionError(f"results differ between {what}, which must never matter")
