"""The noise of a release against its guarantee: halve it, and these tests fail."""

import json
from dataclasses import replace

import numpy as np
import pytest

from logs.worlds import chain, mapping, uniform
from tacit.agents.offline import TacitOffline
from tacit.errors import InvalidInput
from tacit.logs.budget import DatasetBudget
from tacit.logs.files import VALUES, save
from tacit.logs.mapping import LogMapping
from tacit.logs.offline import absorbed, offline
from tacit.logs.simulated import simulate_log
from tacit.privacy.base import Query
from tacit.privacy.noise import SimulatedNoise
from tacit.trajectory import Log
from tacit_lab.report.log_page import render_page

SEEDS = 250


def neighbours(mapped: LogMapping) -> tuple[Log, Log]:
    """Two logs that differ in one person: up the chain with rewards, or down without."""
    problem = chain(4, 6)
    log = simulate_log(problem, uniform(problem), 30, np.random.default_rng(1))
    changed = Log(*(column.copy() for column in log))
    states = {0: [0, 1, 2, 3, 3, 2, 1], 1: [3, 2, 1, 0, 0, 1, 2]}
    for which, one in enumerate((log, changed)):
        path = states[which]
        one.state[:6], one.after[:6] = path[:6], path[1:]
        one.action[:6], one.reward[:6] = [1, 1, 1, 0, 1, 0], 1.0 - which
    return log, changed


def releases(log: Log, mapped: LogMapping, epsilon: float) -> tuple[np.ndarray, float]:
    bound, rows = TacitOffline(epsilon).bind_log(mapped.task, mapped.max_return), []
    privatizer, nobody = bound.privatizer, DatasetBudget("never written", mapped)
    for seed in range(SEEDS):
        held = absorbed(log, privatizer, bound.statistic, nobody, "test", "simulated", seed)
        blocks = privatizer.release(held.secret, Query(0), held.noise).blocks
        rows.append(np.concatenate([block.ravel() for block in blocks.values()]))
    return np.array(rows), held.guarantee.mu


def measured_mu(mapped: LogMapping, epsilon: float) -> tuple[float, float]:
    """How far apart two neighbouring logs lie in standard deviations, and what is claimed."""
    log, changed = neighbours(mapped)
    one, claimed = releases(log, mapped, epsilon)
    two = releases(changed, mapped, epsilon)[0]
    way = two.mean(axis=0) - one.mean(axis=0)
    way /= np.linalg.norm(way)
    spread = np.sqrt((np.var(one @ way, ddof=1) + np.var(two @ way, ddof=1)) / 2)
    return float((two @ way).mean() - (one @ way).mean()) / float(spread), claimed


@pytest.fixture
def mapped() -> LogMapping:
    return mapping(chain(4, 6))


def test_people_of_a_log_in_memory_are_told_apart_and_cut(mapped) -> None:
    log = neighbours(mapped)[0]
    few = replace(mapped, task=replace(mapped.task, users=10))
    found = offline(log, few, TacitOffline(1.0), ledger="never written", noise="simulated")
    assert (found.exact_counts.rows, found.exact_counts.kept, found.exact_counts.people) == (
        180,
        60,
        30,
    )
    assert "people beyond the declared number of 10" in "".join(found.exact_counts.lines(few))
    assert "one person does in all their participations by" in found.guarantee.statement()
    for begin in ([0, 6, 3, 12], [0, 10**6], [-1, 6], [], [0.0, 6.0], [[0, 6]], ["0", "6"]):
        wrong = log._replace(begin=np.array(begin))
        with pytest.raises(InvalidInput, match="person by person|column 'begin'"):
            offline(wrong, mapped, TacitOffline(1.0), ledger="never written", noise="simulated")


# The spread of 2 x 250 draws is off by 3% (one standard deviation), so 15% is 5 of them; the worst
# pair of this table is not the worst of all tables, so the measured distance may be smaller.


def test_neighbouring_logs_are_no_farther_apart_than_claimed(mapped) -> None:
    found, claimed = measured_mu(mapped, 2.0)
    assert 0.6 * claimed < found < 1.15 * claimed


def test_half_of_the_noise_would_be_noticed(mapped, monkeypatch) -> None:
    fill = SimulatedNoise.fill

    def halved(self, law, out) -> None:
        fill(self, law, out)
        out //= 2

    monkeypatch.setattr(SimulatedNoise, "fill", halved)
    found, claimed = measured_mu(mapped, 2.0)
    assert found > 1.15 * claimed


def test_secure_noise_has_the_declared_spread(mapped, tmp_path) -> None:
    log, _ = neighbours(mapped)
    made = offline(log, mapped, TacitOffline(1.0), ledger=tmp_path / "one.ledger")
    again = offline(log, mapped, TacitOffline(1.0), ledger=tmp_path / "two.ledger")
    blocks = zip(made.release.blocks.values(), again.release.blocks.values(), strict=True)
    apart = np.concatenate([(a - b).ravel() for a, b in blocks])
    std = made.guarantee.noise["std"]
    assert made.release.source == "secure" and not made.guarantee.simulated
    # of n differences the spread is off by 1 / sqrt(2 n); n = 59
    assert np.sqrt(np.mean(apart**2) / 2) == pytest.approx(std, rel=0.45)


def test_files_of_simulated_noise_are_not_for_others(tmp_path, mapped) -> None:
    log, path = neighbours(mapped)[0], tmp_path / "made_up.ledger"
    for noise, warned in (("simulated", True), ("secure", False)):
        made = offline(log, mapped, TacitOffline(1.0), ledger=path, noise=noise)
        save(made, tmp_path / noise)
        values = json.loads((tmp_path / noise / VALUES).read_text())
        assert ("do not pass these files on" in values.get("note", "")) is warned
        assert ("do not pass these files on" in render_page(made)) is warned


def test_simulated_noise_says_so(mapped) -> None:
    made = offline(neighbours(mapped)[0], mapped, TacitOffline(1.0), noise="simulated")
    assert made.guarantee.simulated and made.release.source == "simulated"
    assert made.policy.guarantee.simulated
