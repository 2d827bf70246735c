"""What audits run: the device's own path, and whole learners in which one person is replaced."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import tacit
from auditing.small import DELTA, PROBLEMS, bound_to, cases, device, learner, made
from contracts.sampler import misfits
from tacit.agents import Agent
from tacit.auditing import audit_target, targets
from tacit.auditing.neighbours import NeighbourPair, canaries, contribution
from tacit.auditing.recorder import RecordedLearner, log_ratio
from tacit.auditing.targets import CommonNoise, DeviceTarget, LearnerTarget, PredrawnNoise
from tacit.errors import InvalidInput
from tacit.kernels.public.questions import KINDS
from tacit.learner import BoundAgent
from tacit.planners.references import UniformPlanner
from tacit.privacy import Exact, GridLaw, Noise, SecureNoise, SimulatedNoise
from tacit.privacy.curator.curator import Curator
from tacit.privacy.curator.declared_answers import Price
from tacit.privacy.filter import BudgetExhausted
from tacit.privacy.joint.batched import GaussianLaw
from tacit.privacy.joint.counted import LaplaceLaw
from tacit.privacy.local.additive import LocalAdditive, least_scales
from tacit.release import NoNoise, Release
from tacit.statistics.counts import VisitCounts
from tacit.wire import messages

PROBLEM = PROBLEMS["random-mdp"]


def bound_for(agent: Agent, problem=PROBLEM, users: int = 3, times: int = 1) -> BoundAgent:
    task = problem.task(users=users, reveal=sorted(agent.needs))
    return agent.bind(dataclasses.replace(task, participations=times))


def worlds_of(count: int) -> np.ndarray:
    return np.arange(count) % 2


# ---- the device ----


class LeaksOnTheWire(LocalAdditive):
    """Reports are noised where the simulator makes them, but not on the device."""

    def encode(self, contribution, publication, noise):
        honest = super().randomize(contribution, publication, noise)
        return self.report(honest, publication, noise.source)

    def randomize(self, contribution, publication, noise):
        return contribution * self.factors


class EncodedReport:
    """What ``encode`` makes of a pair, without the device's path."""

    name, source = "encoded report", "simulated"

    def __init__(self, bound: BoundAgent, case: NeighbourPair) -> None:
        self.bound, self.case = bound, case

    def sample(self, worlds, rng):
        noise = targets.noise_from("simulated", rng)
        both = [contribution(self.bound, x, self.case.publication, 0) for x in self.case.lives]
        privatizer, public = self.bound.privatizer, self.case.publication
        return np.array([privatizer.encode(both[w], public, noise).values for w in worlds])

    def score(self, outputs):
        return None


def test_what_only_the_device_does_wrong_is_caught() -> None:
    task = PROBLEM.task(users=3)
    statistic, scales = VisitCounts(task), least_scales(VisitCounts(task), "laplace", 1.0)
    leaky = LeaksOnTheWire(statistic, task, "laplace", scales, requested=(1.0, 0.0))
    bound, rng = BoundAgent(task, statistic, leaky, UniformPlanner()), np.random.default_rng(0)
    encoded = EncodedReport(bound, cases(bound)[0])
    assert audit_target(encoded, 1.0, 0.0, 4000, rng=rng).verdict != "violated"
    for target in (device(bound), learner(PROBLEM, bound)):
        assert audit_target(target, 1.0, 0.0, 1000, rng=rng).verdict == "violated"


@pytest.mark.parametrize("times", [1, 3])
def test_every_report_is_packed_and_what_comes_out_of_the_packet_is_judged(
    monkeypatch, times: int
) -> None:
    packed, opened = [], []
    monkeypatch.setattr(
        messages,
        "pack_message",
        lambda message, pack=messages.pack_message: packed.append(pack(message)) or packed[-1],
    )
    monkeypatch.setattr(
        messages,
        "unpack_message",
        lambda text, unpack=messages.unpack_message: opened.append(unpack(text)) or opened[-1],
    )
    bound = bound_for(made("ldp-obi"), times=times)
    target, case = device(bound), cases(bound)[0]
    outputs = target.sample(worlds_of(10), np.random.default_rng(1))
    assert len(packed) == len(opened) == 10 * times
    assert all(isinstance(text, str) for text in packed)
    both = [contribution(bound, life, case.publication, 0) for life in case.lives]
    ratios = bound.privatizer.log_ratio(np.array(opened), *both, case.publication)
    assert outputs[:, 0] == pytest.approx(ratios.reshape(10, times).sum(axis=1))
    assert np.array_equal(outputs[:, 1:], np.array(opened)[times - 1 :: times])
    assert np.array_equal(target.score(outputs), outputs[:, 0])
    assert target.name.startswith("one report" if times == 1 else "3 reports of one person")


def test_what_a_collector_would_refuse_is_not_audited_as_if_it_had_been_sent() -> None:
    class Beyond(LocalAdditive):
        def randomize(self, contribution, publication, noise):
            return super().randomize(contribution, publication, noise) + 2**60

    task = PROBLEM.task(users=3)
    statistic, scales = VisitCounts(task), least_scales(VisitCounts(task), "laplace", 1.0)
    beyond = Beyond(statistic, task, "laplace", scales, requested=(1.0, 0.0))
    target = device(BoundAgent(task, statistic, beyond, UniformPlanner()))
    with pytest.raises(InvalidInput, match="goes beyond"):
        target.sample(worlds_of(2), np.random.default_rng(0))


@pytest.mark.parametrize("name", ["ldp-obi", "tacit-local", "ldp-ucrl-vtr"])
@pytest.mark.parametrize("source", ["simulated", "secure"])
def test_log_ratios_speak_for_the_right_world_from_both_sources(name: str, source: str) -> None:
    """With epsilon 8 they do so in most reports: 100 of them fail with probability below 1e-9."""
    target = device(bound_for(made(name, 8.0)), source)
    worlds = worlds_of(100)
    outputs = target.sample(worlds, np.random.default_rng(2))
    assert target.source == source and np.isfinite(outputs).all()
    assert outputs[worlds == 1, 0].mean() > 0.0 > outputs[worlds == 0, 0].mean()


def test_one_generator_state_gives_one_sample() -> None:
    bound = bound_for(made("tacit-local"))
    one, two = (device(bound).sample(worlds_of(50), np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one, two)


def test_all_questions_of_a_kind_are_asked() -> None:
    bound = bound_to(made("tacit-local"), PROBLEMS["random-mdp, larger"])
    for case in cases(bound):
        target, asked = DeviceTarget(bound, case, "simulated"), set()
        for both in target._lives:
            marks = [bound.statistic.layout.views(own)["question"] for own in both]
            assert np.array_equal(*marks)
            asked.add(int(np.argmax(marks[0])) // KINDS)
        assert asked == (set(range(3)) if case.name == "rewards" else {0, 1})
        assert case.name in target.name


def test_a_joint_agent_has_no_device_to_audit() -> None:
    bound = bound_for(made("tacit-joint"))
    with pytest.raises(InvalidInput, match="only a local agent's devices randomize"):
        DeviceTarget(bound, cases(bound)[0], "simulated")


# ---- secure noise drawn ahead ----


def test_each_draw_is_handed_out_once_and_to_its_own_law(monkeypatch) -> None:
    drawn = []

    def fill(self, law: GridLaw, out: np.ndarray) -> None:
        out[:] = np.arange(len(out)) + 10**6 * len(drawn)
        drawn.append(law)

    monkeypatch.setattr(SecureNoise, "fill", fill)
    monkeypatch.setattr(targets, "DRAWN_AT_ONCE", 30)
    ahead, seen = PredrawnNoise(), []
    laws = [GridLaw("laplace", np.array([1.0, 2.0])), GridLaw("gaussian", np.array([1.0, 2.0]))]
    laws.append(GridLaw("laplace", np.full(40, 3.0)))  # wider than what is drawn ahead
    for turn in range(60):
        law, out = laws[turn % 3], np.empty(len(laws[turn % 3].scales), dtype=np.int64)
        ahead.fill(law, out)
        call = out // 10**6
        assert (call == call[0]).all() and drawn[call[0]].kind == law.kind
        assert np.array_equal(drawn[call[0]].scales[out % 10**6], law.scales)
        seen.extend(out.tolist())
    assert len(seen) == len(set(seen)) == 20 * (2 + 2 + 40)
    assert ahead.source == "secure"


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_draws_ahead_have_the_exact_law(kind: str) -> None:
    assert not misfits(PredrawnNoise(), kind)


def test_coins_and_finite_reports_come_from_the_secure_source(monkeypatch) -> None:
    monkeypatch.setattr(SecureNoise, "happens", lambda self, chance, of: (chance, of))
    monkeypatch.setattr(SecureNoise, "randomize", lambda self, randomizer, value: [value])
    assert PredrawnNoise().happens(1, 3) == (1, 3) and PredrawnNoise().randomize(None, 4) == [4]


# ---- the same draws in both worlds ----


def test_a_second_run_meets_the_draws_of_the_first_by_law_and_in_order() -> None:
    source = SimulatedNoise(np.random.default_rng(0))
    noise = CommonNoise(source)
    narrow, wide = (GridLaw("gaussian", np.full(3, scale)) for scale in (10.0, 1e6))

    def drawn(*laws: GridLaw) -> list[tuple]:
        out = np.empty((len(laws), 3), dtype=np.int64)
        for law, row in zip(laws, out, strict=True):
            noise.fill(law, row)
        return [tuple(row) for row in out.tolist()]

    first = drawn(narrow, wide, narrow)
    noise.repeat()
    again = drawn(wide, narrow, narrow, narrow, wide)
    assert again[:3] == [first[1], first[0], first[2]]
    assert len({*first, *again}) == 5  # what goes beyond the first run is fresh
    noise = CommonNoise(source)
    assert not {*first, *again} & {*drawn(narrow, wide, narrow)}
    assert noise.source == "simulated"


@pytest.mark.parametrize("source", ["simulated", "secure"])
@pytest.mark.parametrize("name", ["tacit-joint", "private-linopt-vi", "device"])
def test_runs_in_both_worlds_differ_by_what_the_two_lives_do(name: str, source: str) -> None:
    """By mu squared: a log-likelihood ratio of Gaussian noise has these two means."""
    if name == "device":
        agent = tacit.agent("ldp-obi", epsilon=2.0, delta=DELTA, randomizer="gaussian")
        bound = bound_for(agent)
        target = device(bound, source)
    else:
        bound = bound_for(made(name, 2.0))
        target = learner(PROBLEM, bound, source)
    worlds = worlds_of(12)
    outputs, others = target.sample_both(worlds, np.random.default_rng(0))
    apart = (others - outputs)[:, 0] * (1 - 2 * worlds)
    assert apart == pytest.approx(np.full(12, apart[0]), rel=1e-6)
    assert apart[0] == pytest.approx((target.distance * bound.guarantee.mu) ** 2, rel=1e-3)
    assert outputs[:, 0].std() > 0.1  # the noise of one trial is not that of another
    assert len(np.unique(outputs[:, 0])) == 12


# ---- privatizers that state no ratio ----


def test_a_declared_law_speaks_as_its_density_does() -> None:
    rng = np.random.default_rng(0)
    apart, rest = rng.normal(size=(2, 6))
    for law, density in (
        (GaussianLaw(2.0), stats.norm(scale=2.0)),
        (LaplaceLaw(2.0, 2.0 * 2**0.5), stats.laplace(scale=2.0)),
        (LaplaceLaw(2.0, 2.0), stats.norm(scale=2.0)),  # a sum of draws, by its variance
    ):
        release = Release(1, {"a": np.zeros(2), "b": np.zeros((2, 2))}, law, "simulated")
        expected = (density.logpdf(rest - apart) - density.logpdf(rest)).sum()
        assert log_ratio(release, apart, rest) == pytest.approx(expected)
    silent = Release(1, {"a": np.zeros(6)}, NoNoise(), "none")
    assert log_ratio(silent, apart, rest) == 0.0


@pytest.mark.parametrize("batches", [True, False])
def test_what_others_did_is_taken_off_whether_a_release_is_of_a_batch_or_of_all(
    batches: bool, monkeypatch
) -> None:
    """Without noise a release minus the sums in it is what the audited person changed."""

    class Plain(Exact):
        def release(self, secret, query, noise):
            release = super().release(secret, query, noise)
            if batches:
                secret.sums[:], secret.users = 0, 0
            return release

    like = bound_for(made("ldp-obi"), users=6)
    bound = dataclasses.replace(like, privatizer=Plain(like.statistic, like.task))
    case = cases(like)[0]
    target = LearnerTarget(PROBLEM, bound, [case], "simulated")
    runs = []

    def recorded(noise: Noise, worlds: list[int]) -> RecordedLearner:
        runs.append(RecordedLearner(bound, noise, [case], worlds))
        return runs[-1]

    monkeypatch.setattr(target, "_watched", recorded)
    outputs = target.sample(worlds_of(2), np.random.default_rng(0))
    one, two = (contribution(bound, x, case.publication, 0) for x in case.lives)
    for world, run in enumerate(runs):
        rests, raw = run.rests(), run.shown()
        assert len(rests) == len(raw) == 5
        shown = np.concatenate([*rests, *raw])
        assert np.array_equal(outputs[world, 1 : 1 + len(shown)], shown)
        for step, rest in enumerate(rests):
            seen = world == 1 and (step == 0 or not batches)
            assert rest == pytest.approx((two - one) * bound.statistic.layout.units * seen)


# ---- the learner ----


@pytest.fixture
def watched(monkeypatch) -> list[RecordedLearner]:
    """All runs of learner targets."""
    runs: list[RecordedLearner] = []

    class Kept(RecordedLearner):
        def __init__(self, *args) -> None:
            super().__init__(*args)
            runs.append(self)

    monkeypatch.setattr(targets, "RecordedLearner", Kept)
    return runs


LEARNERS = ["ldp-obi", "tacit-joint", "private-linopt-vi", "dp-lsvi-batch"]


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("times", [1, 2])
def test_the_audited_person_comes_first_and_is_replaced_every_time(
    name: str, times: int, watched
) -> None:
    bound = bound_for(made(name), users=2 + times, times=times)
    case = cases(bound)[0]
    target = LearnerTarget(PROBLEM, bound, [case], "simulated")
    target.sample(np.array([0, 1]), np.random.default_rng(0))
    assert len(watched) == 2
    for world, run in enumerate(watched):
        record = run._record(0)
        assert run.served == 2 + times
        apart = [two - one for one, two in zip(record.first, record.second, strict=True)]
        if name == "ldp-obi":  # the same in every publication
            one, two = (contribution(bound, x, case.publication, 0) for x in case.lives)
            assert np.array_equal(sum(apart), times * (two - one))
        lived = [batch for batch in range(len(apart)) if apart[batch].any()]
        assert lived == list(range(len(lived))) and len(lived) <= times
        mine = record.second if world else record.first
        assert all(map(np.array_equal, mine, run._lived))


def test_everybody_else_lives_in_the_problem_and_acts_on_what_was_published(watched) -> None:
    acted = []

    class Watching:
        def __init__(self, problem) -> None:
            self.problem = problem

        def rollout(self, policy, rng):
            acted.append(policy)
            return self.problem.rollout(policy, rng)

    agent = made("private-linopt-vi", 1000.0)  # so little noise that policies follow the data
    bound = bound_for(agent, users=12)
    target = LearnerTarget(Watching(PROBLEM), bound, cases(bound)[:1], "simulated")
    target.sample(np.zeros(6, dtype=np.int64), np.random.default_rng(0))
    assert len(acted) == 6 * 11  # all but the audited person
    tables = [np.asarray(policy.actions).tobytes() for policy in acted]
    assert len(set(tables)) > 1
    for number, run in enumerate(watched):
        last = np.asarray(run.publication.policy.actions)
        assert np.array_equal(np.asarray(acted[11 * number + 10].actions), last)


def test_a_curator_is_asked_as_often_as_it_answers(watched) -> None:
    """Also if its planner asks nothing, for several rounds."""
    silent = bound_for(made("dp-lsvi-batch"))
    curator = silent.privatizer
    answers = dataclasses.replace(curator.answers, rounds=5)
    curator = Curator(
        curator.statistic, silent.task, curator.stream.strategy, curator.gram_std, answers,
        Price.joint(curator.statistic.pairs, 1.0), requested=(1.0, DELTA),
    )  # fmt: skip
    silent = dataclasses.replace(silent, privatizer=curator, planner=UniformPlanner())
    for bound in (bound_for(made("dp-lsvi-batch")), bound_for(made("dp-lsvi-ucb++")), silent):
        curator = bound.privatizer
        learner(PROBLEM, bound).sample(np.array([1]), np.random.default_rng(0))
        run = watched[-1]
        assert run.secret.rounds == curator.answers.rounds > 0
        assert curator.open_queries(run.secret) == []
        asked = [(query.target, query.stage) for query, _, _ in run._answers]
        for question in curator.answers.questions:
            assert asked.count(question) == curator.answers.rounds
        with pytest.raises(BudgetExhausted):
            run._answer("once more", *curator.answers.questions[0])


def test_questions_are_asked_for_the_values_that_tell_most(watched) -> None:
    bound = bound_for(made("dp-lsvi-batch"))
    learner(PROBLEM, bound).sample(np.array([0]), np.random.default_rng(0))
    run, curator, rng = watched[-1], bound.privatizer, np.random.default_rng(1)
    record = run._record(0)

    def apart(query, count: int) -> float:
        one, two = (
            curator.mean(np.sum(batches[:count], axis=0), query)
            for batches in (record.first, record.second)
        )
        return float(np.linalg.norm(two - one))

    for query, count, _ in run._answers:
        most = max(float(ranges.max()) for ranges in curator.answers.ranges.values())
        for _ in range(20):
            values = rng.choice([0.0, most, most / 2], size=len(query.values))
            other = dataclasses.replace(query, values=values)
            assert apart(other, count) <= apart(query, count) * (1 + 1e-6) + 1e-6


@pytest.mark.parametrize("source", ["simulated", "secure"])
@pytest.mark.parametrize("name", LEARNERS)
def test_everything_that_is_published_is_in_the_outputs(name: str, source: str, watched) -> None:
    bound = bound_for(made(name, 8.0))
    target, rng = learner(PROBLEM, bound, source), np.random.default_rng(0)
    outputs = target.sample(worlds_of(6), rng)
    assert outputs.shape == (6, target._width) and np.isfinite(outputs).all()
    assert outputs.shape == target.sample(worlds_of(6), rng).shape
    for row, run in zip(outputs, watched, strict=False):
        shown = np.concatenate([*run.shown(), np.ravel(run.publication.policy.actions)])
        assert row[0] == run.log_ratios()[0]
        assert np.array_equal(row[1 : 1 + len(shown)], shown) and not row[1 + len(shown) :].any()
        assert len(run._released) == len(run._lived) - 1 >= 1
        assert run.noise.source == source
    assert target.separate and np.array_equal(target.score(outputs), outputs[:, 0])


def test_several_people_in_one_run_are_several_trials(watched) -> None:
    problem = PROBLEMS["river-swim"]
    agent = tacit.agent("tacit-joint", epsilon=8.0, first=8)
    bound = bound_for(agent, problem, users=12)
    case, rng = cases(bound)[0], np.random.default_rng(0)
    people = canaries(bound, case, 4, rng)
    target = LearnerTarget(problem, bound, people, "simulated")
    assert len(people) > 1 and not target.separate and target.family == "gaussian"
    worlds = np.random.default_rng(1).integers(2, size=400 * len(people) + 1)
    outputs = target.sample(worlds, rng)
    assert outputs.shape == (len(worlds), 1) and len(watched) == 401
    ratios = outputs[:-1].reshape(-1, len(people))
    signs = 2 * worlds[:-1].reshape(-1, len(people)) - 1
    residuals = ratios - signs * (ratios * signs).mean(axis=0)
    correlations = np.corrcoef(residuals.T)[~np.eye(len(people), dtype=bool)]
    assert np.abs(correlations).max() < 5 / 400**0.5  # beyond with probability below 1e-5
    assert ((ratios * signs).mean(axis=0) > 0.0).all()
