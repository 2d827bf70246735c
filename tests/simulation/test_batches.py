"""tacit-local in batches: sums in their exact joint law, runs equal to the driver.

Simulated draws are seeded, so nothing here changes from run to run; thresholds are set as if it
did, each with a chance below 1e-6 to fail.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from contracts.moments import moments_fit
from tacit.agents import TacitLocal
from tacit.driver import CappedBatches, drive
from tacit.kernels.cells import CellEstimates, CellSums, estimate_cells
from tacit.privacy import SimulatedNoise
from tacit.privacy.finite import KaryResponse, SubsetSelection, UnaryEncoding
from tacit.privacy.local.one_cell import chances
from tacit.problems import TabularMDP, make_problem
from tacit.simulation import batches, simulate
from tacit.simulation.compiled import OneCellRun, _explore, _sampler, compiled_run
from tacit.simulation.streams import planner_streams, stream

S, A, H = 2, 1, 2
DRAWS = 2000
FULL = 1024


# ---- the sum of a batch -------------------------------------------------------------------------

ORACLES = {
    "subset": (SubsetSelection.calibrate(0.4, 8), SubsetSelection.calibrate(0.2, 4)),
    "k-ary": (KaryResponse.calibrate(2.0, 8), KaryResponse.calibrate(1.0, 4)),
    "unary": (UnaryEncoding.calibrate(1.0, 8), UnaryEncoding.calibrate(2.0, 4)),
}
COUNTS = {
    "few": ([1, 0, 2, 0, 0, 1, 0, 1], [0, 3, 1, 0]),
    "many": ([300, 0, 200, 10, 0, 90, 0, 100], [0, 350, 100, 200]),
}
WEIGHTS = np.array([[FULL, 512], [256, FULL]])


def zero_sums():
    shapes = ((1, S, A, 2, S), (S, A, 2), (1, S, A), (S, A), (1, S, A), (S, A), S, 1)
    return CellSums(*(np.zeros(shape, dtype=np.int64) for shape in shapes))


def closed(samplers, counts, rng):
    """Sums after one batch, and what the collector makes of them."""
    batch = batches.Batch(
        policy=np.zeros((H, S), dtype=np.int64),
        weights=WEIGHTS,
        clock=np.zeros(2, dtype=np.int64),
        counts=np.zeros((H, 8), dtype=np.int64),
        users=np.array([sum(row) for row in counts]),
    )
    for h, row in enumerate(counts):
        batch.counts[h, : len(row)] = row
    sums, row = zero_sums(), np.full(8, -1, dtype=np.int64)
    batches.close_batch(*samplers, batch, sums, rng, row)
    assert not batch.counts.any() and not batch.users.any()  # ready for the next batch
    estimates = CellEstimates(
        np.zeros((1, S, A, 2, S)), np.zeros((S, A, 2)), np.zeros((1, S, A)), np.zeros((S, A)),
        np.zeros(S),
    )  # fmt: skip
    estimate_cells(sums, samplers[0].chances, samplers[1].chances, False, estimates)
    return sums, estimates


def sampled(oracles, counts, seed=1, draw=closed):
    samplers, rng = tuple(_sampler(oracle) for oracle in oracles), np.random.default_rng(seed)
    drawn = [draw(samplers, counts, rng)[1] for _ in range(DRAWS)]
    return (
        np.array([e.transitions.ravel() for e in drawn]),
        np.array([e.last.ravel() for e in drawn]),
        np.array([e.first for e in drawn]),
    )


def exact(oracles, counts):
    """Mean and covariance of the weighted estimates, user by user."""
    for h, (oracle, row) in enumerate(zip(oracles, counts, strict=True)):
        w = np.repeat(WEIGHTS[h] / FULL, len(row) // S)
        covariance = sum(n * oracle.covariance(x) for x, n in enumerate(row))
        yield w * np.array(row), np.outer(w, w) * covariance
    by_state = np.kron(np.eye(S), np.ones(4))
    covariance = sum(n * oracles[0].covariance(x) for x, n in enumerate(counts[0]))
    yield by_state @ counts[0], by_state @ covariance @ by_state.T


@pytest.mark.parametrize("size", COUNTS)
@pytest.mark.parametrize("name", ORACLES)
def test_a_batch_has_the_exact_mean_and_covariance_of_its_users(name, size):
    oracles, counts = ORACLES[name], COUNTS[size]
    for drawn, (mean, covariance) in zip(
        sampled(oracles, counts), exact(oracles, counts), strict=True
    ):
        mean_off, covariance_off = moments_fit(drawn, mean, covariance)
        assert mean_off < 6 and covariance_off < 6


@pytest.mark.parametrize("name", ["subset", "k-ary"])
def test_cells_drawn_one_by_one_would_not_pass(name):
    """Right means and right variances, but independent: the covariance refuses it."""
    oracles, counts = ORACLES[name], COUNTS["many"]

    def independent(samplers, counts, rng):
        return closed(tuple(sampler._replace(size=0) for sampler in samplers), counts, rng)

    (drawn, last, first), laws = sampled(oracles, counts, 1, independent), exact(oracles, counts)
    for part, (mean, covariance) in zip((drawn, last, first), laws, strict=True):
        mean_off, covariance_off = moments_fit(part, mean, covariance)
        assert mean_off < 6 < covariance_off
    assert np.var(last, axis=0) == pytest.approx(
        np.diag(list(exact(oracles, counts))[1][1]), rel=0.2
    )


def test_weights_and_users_are_counted_without_noise():
    samplers = tuple(_sampler(oracle) for oracle in ORACLES["subset"])
    sums, _ = closed(samplers, COUNTS["many"], np.random.default_rng(0))
    assert sums.weight.ravel().tolist() == [700 * FULL, 700 * 512]
    assert sums.last_weight.ravel().tolist() == [650 * 256, 650 * FULL]
    assert sums.square.ravel().tolist() == [700 * FULL**2, 700 * 512**2]
    assert sums.last_square.ravel().tolist() == [650 * 256**2, 650 * FULL**2]
    assert sums.first_users.tolist() == [700]
    size = ORACLES["subset"][0].size
    assert sums.first.sum() == 700 * size  # every report has that many ones


def test_samplers_say_what_their_oracles_are():
    subset, unary = ORACLES["subset"][0], ORACLES["unary"][1]
    assert _sampler(subset) == (8, subset.size, subset.blanket, chances(subset))
    assert _sampler(unary) == (4, 0, 0.0, chances(unary))
    assert chances(unary) == (unary.p, unary.q, unary.variance_outside)


# ---- runs ---------------------------------------------------------------------------------------

PROBLEMS = {
    "pooled": make_problem("random-mdp", states=3, actions=2, horizon=4, seed=2),
    "per stage": make_problem(
        "river-swim", states=3, horizon=5, inhomogeneous=True, rewards="bernoulli"
    ),
    "two stages": TabularMDP(
        np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 3, 2)),
        np.random.default_rng(1).random((2, 3, 2)),
        2,
        [0.2, 0.5, 0.3],
        rewards="bernoulli",
    ),
    "one step": TabularMDP(
        np.full((2, 3, 2), 0.5), [[0.4, 0.5, 0.3], [0.6, 0.2, 0.5]], 1, 1, rewards="bernoulli"
    ),
}


@pytest.mark.parametrize("exploration", ["posterior", "optimistic"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_where_reports_are_the_truth_the_loop_equals_the_driver_to_the_last_bit(
    problem, exploration
):
    """At epsilon 60 no report is ever wrong, and rewards are 0 or 1: only planning is random."""
    agent = TacitLocal(60.0, exploration=exploration, batch=7)
    runs = [
        simulate(PROBLEMS[problem], agent, 400, seeds=2, seed=5, compiled=compiled, checkpoints=7)
        for compiled in (True, False)
    ]
    assert np.array_equal(runs[0].regret, runs[1].regret)
    assert np.array_equal(runs[0].reward, runs[1].reward)
    assert runs[0].guarantee == runs[1].guarantee
    assert len({row.tobytes() for row in runs[0].regret}) == 2


def bound(epsilon=1.0, users=100, problem=None, **parameters):
    problem = problem or PROBLEMS["pooled"]
    return TacitLocal(epsilon, **parameters).bind(problem.task(users=users))


def test_the_compiled_loop_is_really_the_one_that_runs():
    for exploration in ("posterior", "optimistic"):
        agent = bound(exploration=exploration)
        run = compiled_run(PROBLEMS["pooled"], agent, 0, 0, np.array([10]))
        assert type(run) is OneCellRun


@pytest.mark.parametrize("exploration", ["posterior", "optimistic"])
@pytest.mark.parametrize("problem", ["pooled", "per stage"])
def test_the_loop_plans_as_the_planner_does_where_there_is_noise(problem, exploration):
    """One noisy release, 30 planners: the same policies and weights, to the last bit."""
    problem = PROBLEMS[problem]
    agent = bound(1.0, 300, problem, exploration=exploration, bonus_scale=0.3, beta=0.4)
    rng, releases, privatizer = np.random.default_rng(0), [], agent.privatizer
    release = privatizer.release
    privatizer.release = lambda *given: releases.append(release(*given)) or releases[-1]
    noise = SimulatedNoise(rng)
    *_, last = drive(agent, lambda p: problem.rollout(p.policy, rng), noise, planner_streams(0, 0))
    blocks, law = releases[-1].blocks, releases[-1].law
    estimates = CellEstimates(
        blocks["transitions"].copy(),
        blocks["last"].copy(),
        law.variance("transitions"),
        law.variance("last"),
        blocks["first"].copy(),
    )
    run = compiled_run(problem, agent, 0, 0, np.array([300]))
    found = set()
    for seed in range(30):
        streams = planner_streams(seed, 0)
        planned = agent.planner.plan(agent.task, releases[-1], None, last, streams)
        run._batch.clock[1] = planned.version
        ties, posterior = planner_streams(seed, 0)
        users = blocks["first_users"][0]
        batches.plan_batch(
            estimates, users, _explore(agent), ties, posterior, run._work, run._batch
        )
        assert np.array_equal(run._batch.policy, planned.policy.actions)
        assert np.array_equal(run._batch.weights, planned.context["weights"])
        found.add(planned.policy)
    assert len(found) > 5 or exploration == "optimistic"


def test_the_loop_explores_as_it_was_told():
    optimistic = bound(exploration="optimistic", bonus_scale=0.7, beta=0.3)
    assert _explore(optimistic) == (True, 0.7, 0.3, True, 0.02)
    staged = bound(problem=PROBLEMS["per stage"])
    assert _explore(staged)[0] is False and _explore(staged)[3:] == (False, 0.02)


FRACTIONS = TabularMDP(
    [[[0.5, 0.5], [0.9, 0.1]], [[0.2, 0.8], [0.6, 0.4]]], [[0.3, 0.6], [0.9, 0.25]], 2, [0.7, 0.3]
)


def test_many_short_runs_have_the_law_of_the_driver():
    """Two batches of 12, rewards in between: releases agree in every mean and variance.

    Welch's test on values and on squared deviations, 1e-6 over all numbers; regret by
    Kolmogorov-Smirnov at 1e-6.
    """
    users, runs, agent = 30, 250, TacitLocal(2.0, batch=12)
    found = {True: [], False: []}
    regrets = {True: [], False: []}
    for root in range(runs):
        agent_ = agent.bind(FRACTIONS.task(users=users))
        run = compiled_run(FRACTIONS, agent_, root, 0, np.array([users]))
        run.advance(users)
        e, sums = run._estimates, run._sums
        found[True].append(flat(e.transitions, e.last, e.first, sums.weight, sums.last_square))
        regrets[True].append(run.score.now[1])
        found[False].append(stepwise(agent_, root + 10**6, regrets[False]))
    tests = 0
    for one, other in zip(np.array(found[True]).T, np.array(found[False]).T, strict=True):
        if np.ptp(one) == np.ptp(other) == 0.0:
            assert one[0] == other[0]
            continue
        for values in ((one, other), ((one - one.mean()) ** 2, (other - other.mean()) ** 2)):
            assert stats.ttest_ind(*values, equal_var=False).pvalue > 1e-8
            tests += 1
    assert 40 < tests < 100
    assert stats.ks_2samp(regrets[True], regrets[False]).pvalue > 1e-6
    assert len(set(regrets[True])) > 5


def flat(*parts):
    return np.concatenate([part.ravel() for part in parts])


def stepwise(agent, root, regrets):
    """The last release of the driver, in the order of the compiled loop; appends its regret."""
    releases, privatizer = [], agent.privatizer
    release = privatizer.release

    def remember(secret, query, noise):
        releases.append((release(secret, query, noise), privatizer.cell_sums(secret.sums.copy())))
        return releases[-1][0]

    privatizer.release = remember
    users, regret = stream(root, 0, "users"), [0.0]

    def live(publication):
        regret[0] += FRACTIONS.optimal_value() - FRACTIONS.value(publication.policy)
        return FRACTIONS.rollout(publication.policy, users)

    list(drive(agent, live, SimulatedNoise(stream(root, 0, "noise")), planner_streams(root, 0)))
    del privatizer.release
    regrets.append(regret[0])
    last, sums = releases[-1]
    blocks = last.blocks
    return flat(
        blocks["transitions"], blocks["last"], blocks["first"], sums.weight, sums.last_square
    )


@pytest.mark.parametrize("exploration", ["posterior", "optimistic"])
def test_results_do_not_depend_on_chunks(exploration):
    scores = []
    for chunks in ([1000], [1, 2, 3, 4, 90, 151, 49, 1, 199, 500], [7] * 142 + [6]):
        agent = bound(users=1000, exploration=exploration)
        run = compiled_run(PROBLEMS["pooled"], agent, 3, 0, np.array([100, 555, 1000]))
        for episodes in chunks:
            run.advance(episodes)
        scores.append((run.score.regret.tolist(), run.score.reward.tolist()))
    assert scores[0] == scores[1] == scores[2]


@pytest.mark.parametrize(
    ("least", "most", "share"), [(200, 200, 0.02), (5, 200, 0.02), (1, 7, 1.5)]
)
def test_batches_are_as_large_in_the_loop_as_in_the_driver(least, most, share):
    python, kernel = CappedBatches(least, most, share), batches.Schedule(least, most, share)
    for served in [*range(300), 9_999, 10_000, 10_050, 10**9, 10**12]:
        size = python(served)
        assert size == batches.next_batch(kernel, served)
        assert size == max(least, min(int(share * served), most)) >= 1


def test_policies_change_at_the_ends_of_batches_only():
    agent = bound(users=600, epsilon=2.0, batch=60)
    run = compiled_run(PROBLEMS["pooled"], agent, 1, 0, np.array([600]))
    tables, sizes = [], []
    for _ in range(600):
        run.advance(1)
        tables.append(run._batch.policy.tobytes() + run._batch.weights.tobytes())
    sizes = [len(list(group)) for _, group in itertools.groupby(tables)]
    assert sizes == [50] * 12  # 2% of 600 is below the least batch
    assert run._batch.clock.tolist() == [0, 11]
    assert run._sums.first_users[0] == 550 // 4 + 1  # the last batch is not yet summed up


def test_garbage_in_every_work_buffer_does_not_change_the_next_policy():
    for exploration in ("posterior", "optimistic"):
        policies = []
        for poison in (False, True):
            run = compiled_run(
                PROBLEMS["pooled"], bound(exploration=exploration), 2, 0, np.array([999])
            )
            run.advance(100)
            if poison:
                run.problem = make_problem("random-mdp", states=3, actions=2, horizon=4, seed=3)
                for buffer in (*run._work, *run._estimates):
                    buffer[:] = np.nan if buffer.dtype == np.float64 else np.iinfo(np.int64).min
            run.advance(1)  # a new batch begins
            policies.append((run._batch.policy.tolist(), run._batch.weights.tolist()))
        assert policies[0] == policies[1]


def test_raw_counts_reach_the_sums_only_through_the_oracle():
    """What is kept of a batch are hits of random subsets; the counts themselves are cleared."""
    agent = bound(epsilon=0.5)  # batches of 200
    run = compiled_run(PROBLEMS["pooled"], agent, 4, 0, np.array([999]))
    run.advance(200)
    raw = run._batch.counts.copy()
    assert raw.sum() == 200 and not run._sums.first.any()
    run.advance(1)
    assert run._batch.counts.sum() == 1
    size = agent.privatizer.oracle.size
    assert size > 1 and run._sums.first.sum() == 50 * size
    by_state = raw[0].reshape(3, -1).sum(axis=1)
    spread = np.sqrt(agent.privatizer.law(200).variance("first"))
    off = np.abs(run._estimates.first - by_state).max()
    assert 1e-3 * spread < off < 10 * spread
