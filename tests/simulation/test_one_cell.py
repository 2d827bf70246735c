"""tacit-local in batches: sums in their exact joint law, runs equal to the driver.

Simulated draws are seeded, so nothing here changes from run to run; thresholds are set as if it
did, each with a chance below 1e-6 to fail.
"""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats

from contracts import listed
from contracts.moments import moments_fit
from dense import all_pairs
from tacit.agents import ShuffleOBI, TacitLocal
from tacit.experiment import Experiment
from tacit.kernels.public.posterior import NoisyCounts
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP, WEIGHT_STEPS, report_weight
from tacit.kernels.raw.cells import CellSums, estimate_cells
from tacit.learner import drive
from tacit.planners.tacit_local import DirectionalPlanner, released_counts
from tacit.privacy import SimulatedNoise
from tacit.privacy.finite.bits import UnaryEncoding
from tacit.privacy.finite.oracle import Oracle
from tacit.privacy.finite.subset import KaryResponse, SubsetSelection
from tacit.privacy.local.one_cell import OneCell, weighing
from tacit.problems import TabularMDP, make_problem
from tacit.schedules import CappedBatches
from tacit.simulation.dispatch import compiled_run
from tacit.simulation.loops import one_cell
from tacit.simulation.loops.one_cell import OneCellRun, _explore
from tacit.streams import planner_streams, stream
from tacit.task.pairs import met_places

S, A, H = 2, 1, 2
DRAWS = 2000


# ---- the sum of a batch -------------------------------------------------------------------------

ORACLES = {
    "subset": tuple(
        SubsetSelection(D, size, own << 48)
        for D, size, own in ((8, 3, 30_000), (4, 2, 40_000), (4, 2, 36_000))
    ),
    "k-ary": tuple(KaryResponse.calibrate(e, D) for e, D in ((2.0, 8), (1.5, 4), (1.0, 4))),
    "unary": tuple(UnaryEncoding.calibrate(e, D) for e, D in ((1.0, 8), (1.5, 4), (2.0, 4))),
}
QUESTIONS = [(0, STEP), (0, MOVE), (0, REWARD), (1, REWARD)]
COUNTS = {
    "few": ([1, 0, 2, 0, 0, 1, 0, 1], [1, 0, 2, 1], [0, 0, 3, 1], [0, 3, 1, 0]),
    "many": (
        [300, 0, 200, 10, 0, 90, 0, 100],
        [100, 0, 250, 200],
        [90, 300, 0, 50],
        [0, 350, 100, 200],
    ),
}
OCCUPANCY = np.array([[WEIGHT_STEPS, 8000], [3000, WEIGHT_STEPS]])
GROUPS = {  # the number of (s, ...) cells of each kind that make up one released number
    "moves": {STEP: [[0, 2], [1, 3], [4, 6], [5, 7]], MOVE: [[0], [1], [2], [3]]},
    "rewards": {STEP: [[0, 1], [2, 3], [4, 5], [6, 7]], REWARD: [[0], [1], [2], [3]]},
    "first": {
        kind: [[*range(half)], [*range(half, 2 * half)]] for kind, half in enumerate((4, 2, 2))
    },
}


def zero_sums():
    moves, rewards = (2, 1, S * A), (2, 1, S * A)
    shapes = ((*moves, S), (*rewards, 2), *(moves, rewards) * 3, (KINDS, S), (KINDS,))
    return CellSums(*(np.zeros(shape, dtype=np.int64) for shape in shapes))


def closed(samplers, counts, rng, weigh):
    """Sums after one batch, and what the collector makes of them."""
    batch = one_cell.CellBatch(
        policy=np.zeros((H, S), dtype=np.int64),
        occupancy=OCCUPANCY,
        asked=np.zeros(KINDS * H),
        clock=np.zeros(3, dtype=np.int64),
        answers=np.array(
            [
                (KINDS * h + kind, cell)
                for (h, kind), row in zip(QUESTIONS, counts, strict=True)
                for cell, people in enumerate(row)
                for _ in range(people)
            ]
        ),
        users=np.zeros(KINDS * H, dtype=np.int64),
    )
    np.add.at(batch.users, batch.answers[:, 0], 1)
    sums, places = zero_sums(), met_places(all_pairs(S, A))
    one_cell.close_batch(samplers, weigh, places, batch, sums, rng)
    assert not batch.users.any()  # ready for the next batch
    pairs = (1, S * A)
    out = NoisyCounts(
        *(np.zeros(x) for x in ((*pairs, S), (*pairs, 2), pairs, pairs, pairs, pairs))
    )
    first = np.zeros(S)
    estimate_cells(sums, *(sampler.chances for sampler in samplers), out, first)
    return sums, {"moves": out.moves.ravel(), "rewards": out.rewards.ravel(), "first": first}


def sampled(oracles, counts, seed=1, change=lambda sampler: sampler):
    """What many batches say of everything released, as one row each."""
    samplers, rng = tuple(change(o.sampler) for o in oracles), np.random.default_rng(seed)
    weigh = weighing(oracles, S)
    drawn = [closed(samplers, counts, rng, weigh)[1] for _ in range(DRAWS)]
    return np.array([np.concatenate([one[name] for name in GROUPS]) for one in drawn])


def exact(oracles, counts):
    """Mean and covariance of everything released together, user by user."""
    weigh = weighing(oracles, S)
    mean, covariance = 0.0, 0.0
    for (h, kind), row in zip(QUESTIONS, counts, strict=True):
        oracle, lines = oracles[kind], []
        for name, groups in GROUPS.items():
            for group in groups.get(kind, [[]] * 4):
                line = np.zeros(len(row))
                if name == "first":
                    line[group] = 1.0 if h == 0 else 0.0
                elif group:
                    noise = getattr(weigh, name)[0 if kind == STEP else 1]
                    s = group[0] * S // len(row)
                    line[group] = report_weight(OCCUPANCY[h, s], noise, weigh) / WEIGHT_STEPS
                lines.append(line)
        M = np.array(lines)
        mean = mean + M @ row
        covariance = (
            covariance + M @ sum(n * listed.covariance(oracle, x) for x, n in enumerate(row)) @ M.T
        )
    return mean, covariance


def fits(drawn, mean, covariance):
    """How far mean and covariance are off, of what has any noise; the rest must be exact."""
    noisy = np.diag(covariance) > 1e-9
    assert np.allclose(drawn[:, ~noisy], mean[~noisy], atol=1e-6)
    drawn, mean, covariance = drawn[:, noisy], mean[noisy], covariance[np.ix_(noisy, noisy)]
    return moments_fit(drawn, mean, covariance)


def alone(size, only):
    """The users who are asked this one question, nobody else."""
    return [row if i == only else [0] * len(row) for i, row in enumerate(COUNTS[size])]


@pytest.mark.parametrize("size", COUNTS)
@pytest.mark.parametrize("name", ORACLES)
def test_a_batch_has_the_exact_mean_and_covariance_of_its_users(name, size):
    """Of moves, rewards and start states together; 120 covariances at 6 errors: below 1e-6."""
    oracles, counts = ORACLES[name], COUNTS[size]
    mean_off, covariance_off = fits(sampled(oracles, counts), *exact(oracles, counts))
    assert mean_off < 6 and covariance_off < 6


@pytest.mark.parametrize("only", range(len(QUESTIONS)))
def test_so_has_every_question_alone(only):
    """Then some sums of cells have no noise at all: the ones of a report have a fixed number."""
    oracles, counts = ORACLES["subset"], alone("many", only)
    mean, covariance = exact(oracles, counts)
    drawn = sampled(oracles, counts)
    mean_off, covariance_off = fits(drawn, mean, covariance)
    assert mean_off < 6 and covariance_off < 6
    values, vectors = np.linalg.eigh(covariance)
    still = vectors[:, values <= 1e-9 * values.max()]
    assert still.shape[1] > 0 and np.allclose((drawn - mean) @ still, 0.0, atol=1e-6)


@pytest.mark.parametrize("only", range(len(QUESTIONS)))
@pytest.mark.parametrize("name", ["subset", "k-ary"])
def test_cells_drawn_one_by_one_would_not_pass(name, only):
    """Right means and right variances of cells, but independent: the covariance refuses it."""
    oracles, counts = ORACLES[name], alone("many", only)
    drawn = sampled(oracles, counts, change=lambda sampler: sampler._replace(size=0))
    mean, covariance = exact(oracles, counts)
    mean_off, covariance_off = fits(drawn, mean, covariance)
    assert mean_off < 6 < covariance_off
    _, kind = QUESTIONS[only]
    if kind != STEP:  # moves or rewards are cells
        part = slice(0, 4) if kind == MOVE else slice(4, 8)
        variances = np.diag(covariance)[part]
        assert np.var(drawn[:, part], axis=0) == pytest.approx(variances, rel=0.2)


def test_weights_and_users_are_counted_without_noise():
    oracles = ORACLES["subset"]
    samplers, weigh = tuple(oracle.sampler for oracle in oracles), weighing(oracles, S)
    sums, _ = closed(samplers, COUNTS["many"], np.random.default_rng(0), weigh)

    def weights(noise, h):
        return np.array([report_weight(d, noise, weigh) for d in OCCUPANCY[h]])

    joint, alone = weights(weigh.moves[0], 0), weights(weigh.moves[1], 0)
    for found, power in ((sums.moves_weight, 1), (sums.moves_square, 2)):
        assert found[0].ravel().tolist() == (700 * joint**power).tolist()
        assert found[1].ravel().tolist() == (550 * alone**power).tolist()
    joint, alone, last = (
        weights(weigh.rewards[0], 0), weights(weigh.rewards[1], 0), weights(weigh.rewards[1], 1)
    )  # fmt: skip
    for found, power in ((sums.rewards_weight, 1), (sums.rewards_square, 2)):
        assert found[0].ravel().tolist() == (700 * joint**power).tolist()
        assert found[1].ravel().tolist() == (440 * alone**power + 650 * last**power).tolist()
    assert sums.first_users.tolist() == [700, 550, 440]
    sizes = [oracle.size for oracle in oracles]
    assert sums.first.sum(axis=1).tolist() == [700 * sizes[0], 550 * sizes[1], 440 * sizes[2]]


def test_samplers_say_what_their_oracles_are():
    subset, unary = ORACLES["subset"][0], ORACLES["unary"][1]
    assert subset.sampler == (8, subset.size, subset.blanket, subset.undo)
    assert unary.sampler == (4, 0, 0.0, unary.undo)
    assert unary.undo == (unary.p, unary.q, unary.variance_outside)


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
    "ends": TabularMDP(
        np.random.default_rng(2).dirichlet(np.ones(5), size=(5, 2)),
        np.random.default_rng(3).random((5, 2)),
        4,
        [0.2, 0.0, 0.4, 0.4, 0.0],
        rewards="bernoulli",
        terminal=[1, 4],
        allowed=[[0, 1], [0], [1], [0, 1], [0]],
        end_reward=0.2,
    ),
    "ends per stage": TabularMDP(
        np.random.default_rng(4).dirichlet(np.ones(4), size=(3, 4, 2)),
        np.random.default_rng(5).random((3, 4, 2)),
        3,
        rewards="bernoulli",
        terminal=[2],
    ),
    "one state": TabularMDP(np.ones((1, 2, 1)), [[0.3, 0.6]], 3, rewards="bernoulli"),
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
        Experiment(
            problem=PROBLEMS[problem],
            agent=agent,
            episodes=400,
            seed=5,
            compiled=compiled,
            checkpoints=7,
            runs=2,
        ).run()
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
@pytest.mark.parametrize("problem", ["pooled", "per stage", "ends", "ends per stage"])
def test_the_loop_plans_as_the_planner_does_where_there_is_noise(problem, exploration):
    """One noisy release, 30 planners: the same policies, chances and shares, to the last bit."""
    problem = PROBLEMS[problem]
    agent = bound(1.0, 300, problem, exploration=exploration, bonus_scale=0.3, beta=0.4)
    rng, releases, privatizer = np.random.default_rng(0), [], agent.privatizer
    release = privatizer.release
    privatizer.release = lambda *given: releases.append(release(*given)) or releases[-1]
    noise = SimulatedNoise(rng)
    *_, last = drive(agent, lambda p: problem.rollout(p.policy, rng), noise, planner_streams(0, 0))
    counts = NoisyCounts(*(part.copy() for part in released_counts(releases[-1])))
    first, users = (releases[-1].blocks[name].copy() for name in ("first", "first_users"))
    run = compiled_run(problem, agent, 0, 0, np.array([300]))
    found = set()
    for seed in range(30):
        streams = planner_streams(seed, 0)
        planned = agent.planner.plan(agent.task, releases[-1], None, last, streams)
        run._batch.clock[1] = planned.version
        run.streams = planner_streams(seed, 0)
        released, share = one_cell.CellRelease(counts, first), releases[-1].users / agent.task.users
        of_batch = run._explore, run._draws, run._batch
        one_cell.plan_batch(released, run._task, int(users[0]), share, *of_batch)
        assert np.array_equal(run._batch.policy, planned.policy.actions)
        assert np.array_equal(run._batch.occupancy, planned.context["occupancy"])
        assert np.array_equal(run._batch.asked, planned.context["questions"])
        assert run._batch.clock[2] == 1
        found.add(planned.policy)
    assert len(found) > 5 or exploration == "optimistic"


def test_the_loop_explores_as_it_was_told():
    optimistic = bound(exploration="optimistic", bonus_scale=0.7, beta=0.3)
    weigh = optimistic.privatizer.weighing
    assert _explore(optimistic, weigh) == (True, False, 0.7, 0.3, weigh, True, 0.02)
    staged = bound(problem=PROBLEMS["per stage"])
    weigh = staged.privatizer.weighing
    assert _explore(staged, weigh) == (False, False, 0.0, 0.0, weigh, True, 0.02)
    silent = DirectionalPlanner(bonus_scale=0.7, beta=0.3)
    assert _explore(dataclasses.replace(optimistic, planner=silent), weigh).asks is False


@pytest.mark.parametrize("steps", ["own", "assigned"])
def test_behind_a_shuffler_steps_are_asked_jointly_and_the_last_for_its_reward(steps):
    """3000 users of one batch, four steps: by chi-square at 1e-6 where they draw them."""
    problem, agent = PROBLEMS["pooled"], ShuffleOBI(1.0, 1e-6, "tight", steps=steps, batch=3000)
    run = compiled_run(problem, agent.bind(problem.task(10_000)), 0, 0, np.array([10_000]))
    run.advance(3000)
    users = run._batch.users.reshape(4, KINDS)
    asked = np.array([users[0, STEP], users[1, STEP], users[2, STEP], users[3, REWARD]])
    assert asked.sum() == users.sum() == 3000
    assert ((asked - 750) ** 2 / 750).sum() < 30.7 and (asked == 750).all() == (steps == "assigned")


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
        found[True].append(flat(*run._released.counts, run._released.first, *run._sums))
        regrets[True].append(run.score.now[1])
        found[False].append(stepwise(agent_, root + 10**6, regrets[False]))
    tests = 0
    for one, other in zip(np.array(found[True]).T, np.array(found[False]).T, strict=True):
        if np.ptp(one) == np.ptp(other) == 0.0:
            assert one[0] == other[0]
            continue
        for values in ((one, other), ((one - one.mean()) ** 2, (other - other.mean()) ** 2)):
            assert stats.ttest_ind(*values, equal_var=False).pvalue > 2e-9
            tests += 1
    assert 150 < tests < 400
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
    return flat(*released_counts(last), last.blocks["first"], *sums)


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
    python, kernel = CappedBatches(least, most, share), one_cell.BatchSizes(least, most, share)
    for served in [*range(300), 9_999, 10_000, 10_050, 10**9, 10**12]:
        size = python(served)
        assert size == one_cell.next_batch(kernel, served)
        assert size == max(least, min(int(share * served), most)) >= 1


def test_policies_change_at_the_ends_of_batches_only():
    agent = bound(users=600, epsilon=2.0, batch=60)
    run = compiled_run(PROBLEMS["pooled"], agent, 1, 0, np.array([600]))
    tables, sizes = [], []
    for _ in range(600):
        run.advance(1)
        public = run._batch.policy, run._batch.occupancy, run._batch.asked
        tables.append(b"".join(part.tobytes() for part in public))
    sizes = [len(list(group)) for _, group in itertools.groupby(tables)]
    assert sizes == [50] * 12  # 2% of 600 is below the least batch
    assert run._batch.clock.tolist() == [0, 11, 1]
    assert run._sums.moves_weight.any() and run._batch.users.sum() == 50  # not yet summed up


def test_garbage_in_every_buffer_does_not_change_the_next_policy():
    for exploration in ("posterior", "optimistic"):
        policies = []
        for poison in (False, True):
            run = compiled_run(
                PROBLEMS["pooled"], bound(exploration=exploration), 2, 0, np.array([999])
            )
            run.advance(100)
            if poison:
                run.problem = make_problem("random-mdp", states=3, actions=2, horizon=4, seed=3)
                for buffer in (*run._released.counts, run._released.first):
                    buffer[:] = np.nan if buffer.dtype == np.float64 else np.iinfo(np.int64).min
            run.advance(1)  # a new batch begins
            batch = run._batch
            policies.append((batch.policy.tolist(), batch.occupancy.tolist(), batch.asked.tolist()))
        assert policies[0] == policies[1]


def test_raw_counts_reach_the_sums_only_through_the_oracle():
    """What is kept of a batch are hits of random subsets; the counts themselves are cleared."""
    agent = bound(epsilon=0.5)  # batches of 200
    run = compiled_run(PROBLEMS["pooled"], agent, 4, 0, np.array([999]))
    run.advance(200)
    raw = run._batch.answers[:200].copy()
    assert run._batch.users.sum() == 200 and not run._sums.first.any()
    run.advance(1)
    assert run._batch.users.sum() == 1
    joint = agent.privatizer.oracles[STEP]
    assert joint.size > 1 and run._sums.first.sum() == 50 * joint.size
    by_state = np.bincount(raw[raw[:, 0] == 0, 1] // 6, minlength=3)
    spread = np.sqrt(50 * 6 * (joint.variance_outside + 5 * joint.covariance_outside))
    off = np.abs(run._released.first - by_state).max()
    assert 1e-3 * spread < off < 10 * spread


# ---- oracles that the loop does not know ------------------------------------------------------


class Hesitant(SubsetSelection):
    """Says nothing half of the time: not the law that the loop would draw."""

    def encode(self, cell, rng):
        report = super().encode(cell, rng)
        return np.zeros_like(report) if rng.random() < 0.5 else report


class Foreign(Oracle):
    """Somebody's own oracle, no relative of ours: what it does is known to itself alone."""

    title = "somebody's own"

    def __init__(self, own):
        self.own, self.domain = own, own.domain

    chances = property(lambda self: self.own.chances)
    epsilon = property(lambda self: self.own.epsilon)
    ones = property(lambda self: self.own.ones)
    covariance_outside = property(lambda self: self.own.covariance_outside)

    def channel(self):
        return self.own.channel()

    @classmethod
    def calibrate(cls, epsilon, domain):
        return cls(SubsetSelection.calibrate(epsilon, domain))

    def encode(self, cell, rng):
        return self.own.encode(cell, rng)

    def encode_secure(self, cell):
        return self.own.encode_secure(cell)


@pytest.mark.parametrize("kind", [STEP, MOVE, REWARD])
@pytest.mark.parametrize("foreign", ["subclass", "own"])
def test_an_oracle_that_the_loop_does_not_know_goes_through_the_driver(foreign, kind):
    """Sampled as independent bits it would have another law, without a word."""
    agent = bound(2.0, 60)
    oracles = list(agent.privatizer.oracles)
    known = oracles[kind]
    assert isinstance(known, SubsetSelection)
    if foreign == "own":
        oracles[kind] = Foreign(known)
    else:
        oracles[kind] = Hesitant(known.domain, known.size, known.own)
    statistic, task = agent.statistic, agent.task
    privatizer = OneCell(statistic, task, requested_epsilon=2.0, oracles=tuple(oracles))
    other = dataclasses.replace(agent, privatizer=privatizer)
    assert compiled_run(PROBLEMS["pooled"], agent, 0, 0, np.array([60])) is not None
    assert compiled_run(PROBLEMS["pooled"], other, 0, 0, np.array([60])) is None
