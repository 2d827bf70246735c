"""The checks that catch the mutants: each says whether it objects to a mechanism."""

import itertools
import math
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np

import tacit
from auditing import small
from contracts import listed
from contracts.composition import counts_l1, counts_l2, fresh_noise, one_draw, pure_delta
from contracts.entropy import secure_law
from contracts.planner import PlannerContract
from contracts.privatizer import PrivatizerContract, taking_part
from contracts.randomizer import subset_law
from corpus import agents
from corpus.tabular import same_claim
from privacy.local import cells
from service.conftest import LOCAL
from tacit.auditing import Target, audit_target
from tacit.kernels.public.questions import MOVE
from tacit.kernels.raw.cells import cell_index
from tacit.learner import BoundAgent
from tacit.planners.base import next_version
from tacit.planners.references import UniformPlanner
from tacit.policies.tabular import uniform_policy
from tacit.privacy import Exact, Guarantee, Secret, SecureNoise, SimulatedNoise
from tacit.privacy.counters.tree import Tree
from tacit.privacy.curator.curator import Curator
from tacit.privacy.curator.declared_answers import Answers, Price
from tacit.privacy.curator.paper import Independent
from tacit.privacy.filter import BudgetExhausted
from tacit.privacy.finite import packing
from tacit.privacy.finite.channel import Channel
from tacit.privacy.finite.subset import SubsetSelection
from tacit.privacy.joint.batched import BatchSums
from tacit.privacy.local.additive import LocalAdditive, least_scales
from tacit.privacy.local.one_cell import OneCell
from tacit.privacy.local.weighted import LocalWeighted
from tacit.publication import Publication
from tacit.release import ValueQuery
from tacit.statistics import Relation
from tacit.statistics.counts import VisitCounts
from tacit.statistics.linear import CuratedTransitions
from tacit.statistics.one_step import OneStep
from tacit.task.task import Task
from tacit.trajectory import Trajectory
from tacit_service.config.deployment import Deployment
from tacit_service.responses import ServiceRefused
from tacit_service.storage.witness import Mark, Witness

PROBLEM = tacit.problem("random-mdp", seed=1)
TASK = PROBLEM.task(users=3)
EPSILON = 3.0


def bound_with(privatizer, statistic=None) -> BoundAgent:
    return BoundAgent(TASK, statistic or VisitCounts(TASK), privatizer, UniformPlanner())


def audited(target: Target, trials: int) -> str:
    """Verdict on a pure claim; a false alarm on a right mechanism has probability below 0.001."""
    rng = np.random.default_rng(3)
    return audit_target(target, EPSILON, 0.0, trials, confidence=0.999, rng=rng).verdict


def one_report_is_refuted(broken: type[LocalAdditive]) -> bool:
    bound = bound_with(same_claim(broken, TASK, EPSILON))
    return audited(small.device(bound), 60_000) == "violated"


def learner_is_refuted(broken: type[LocalAdditive]) -> bool:
    bound = bound_with(same_claim(broken, TASK, EPSILON))
    return audited(small.learner(PROBLEM, bound), 1500) == "violated"


KINDS_OF_AGENTS = ("ldp-obi", "tacit-local", "tacit-joint", "tacit-linear")
"""One agent of each kind of mechanism; ``tests/auditing/test_agent.py`` takes all of them."""


def agents_are_refuted(wrap) -> bool:
    """Whether audits refute agents with this mistake; some of them but not all is an error."""
    verdicts = {name: agents.audited(wrap, name).verdict for name in KINDS_OF_AGENTS}
    refuted = [name for name, verdict in verdicts.items() if verdict == "violated"]
    assert len(refuted) in (0, len(verdicts)), f"only {refuted} of {verdicts}"
    return bool(refuted)


def contract_fails(broken: type[LocalAdditive]) -> bool:
    """Whether any check of the privatizer contract fails."""

    class NeighbourPair(PrivatizerContract):
        subject = broken
        rng = np.random.default_rng(0)

        def make(self, statistic):
            return same_claim(broken, TASK, EPSILON)

        def statistic(self):
            return VisitCounts(TASK)

        def noise(self):
            return SimulatedNoise(self.rng if broken.__name__ == "Redrawn" else fresh())

        def drawn(self, guarantee):
            sizes = [(block.name, block.size) for block in VisitCounts(TASK).layout.blocks]
            scales = [np.full(size, guarantee.noise[f"{name} scale"]) for name, size in sizes]
            return [("laplace", np.concatenate(scales))] * 3

        def coming_back(self, times):
            scales = least_scales(VisitCounts(TASK), "laplace", 1.0, 0.0, times)
            of = replace(TASK, participations=times)
            made = broken(VisitCounts(of), of, "laplace", scales, requested=(1.0, 0.0))
            return made, times * counts_l1(of.horizon) / scales["visits"]

        def too_little(self, times):
            of, scales = (
                replace(TASK, participations=times),
                least_scales(VisitCounts(TASK), "laplace", 1.0),
            )
            made = broken(VisitCounts(of), of, "laplace", scales, requested=(0.5, 0.0))
            return made, pure_delta(times * counts_l1(of.horizon) / scales["visits"], 0.5)

    for name in dir(NeighbourPair):
        if name.startswith("test_"):
            try:
                getattr(NeighbourPair(), name)()
            except AssertionError:
                return True
    return False


def cell_is_short_of_noise(broken: type[BatchSums]) -> bool:
    """Whether some cell of some release has other noise than is stated."""

    class NeighbourPair(PrivatizerContract):
        def make(self, statistic):
            return broken(statistic, TASK, requested=(1.0, 1e-5))

        def statistic(self):
            return VisitCounts(TASK)

        def drawn(self, guarantee):
            return [("gaussian", np.full(0, guarantee.noise["batch std"]))]

        def together(self, privatizer, variances):
            return np.diag(variances)

    try:
        NeighbourPair().test_every_cell_of_every_release_has_noise_of_its_own_as_large_as_stated()
    except AssertionError:
        return True
    return False


def takes_other_content(broken: type[Witness]) -> bool:
    """Whether a database that is two releases behind may come to something else."""
    with tempfile.TemporaryDirectory() as folder:
        witness = broken(Path(folder) / "witness", "task")
        witness.create()
        for release in (1, 2, 3):
            witness.note(Mark(release, f"digest {release}"), b"noise")
        try:
            witness.check(Mark(1, "of other content"))
        except ServiceRefused:
            return False
    return True


def fresh() -> np.random.Generator:
    return np.random.default_rng(5)


def exceeds_sensitivity(statistic: VisitCounts) -> bool:
    """Whether adversarial trajectories move the statistic by more than it declares."""
    H = TASK.horizon
    publication = Publication(0, uniform_policy(H, 2, 2))
    vectors = []
    for s in (0, 1):
        for a in (0, 1):
            for r in (0.0, 1.0, 1000.0, -1000.0, np.nan):
                states = np.full(H + 1, s)
                trajectory = Trajectory(states, np.full(H, a), np.full(H, r))
                out = np.zeros(statistic.layout.size, dtype=np.int64)
                statistic.contribute(trajectory, publication, 0, out)
                vectors.append(out * statistic.layout.units)
    points = np.array(vectors)
    apart = points[:, None] - points[None]
    l1 = np.abs(apart).sum(axis=-1).max()
    l2 = np.sqrt((apart**2).sum(axis=-1)).max()
    return bool(
        l1 > statistic.sensitivity("l1", Relation.REPLACE_ONE) * (1 + 1e-9)
        or l2 > statistic.sensitivity("l2", Relation.REPLACE_ONE) * (1 + 1e-9)
    )


def reads_raw_sums(make_planner) -> bool:
    """Whether the poison check of the planner contract fails."""

    class Spy(Exact):
        def init(self) -> Secret:
            self.last = super().init()
            return self.last

    class Peeking(tacit.Agent):
        name = "peeking"

        def bind(self, task: Task) -> BoundAgent:
            statistic = VisitCounts(task)
            spy = Spy(statistic, task)
            planner = make_planner(lambda: statistic.layout.views(spy.last.sums)["visits"][0])
            return BoundAgent(task, statistic, spy, planner)

    class NeighbourPair(PlannerContract):
        def agent(self):
            return Peeking()

        def problem(self):
            return tacit.problem("random-mdp", states=3, horizon=3, seed=4)

    try:
        NeighbourPair().test_destroying_the_raw_sums_before_planning_changes_nothing()
    except AssertionError:
        return True
    return False


def hides_negative_regret(transform) -> bool:
    """A learner scored against the wrong optimum must show it: regret has to stay negative."""
    scored_wrongly = np.array([-1.0, -2.0, -3.0])
    return not np.array_equal(transform(scored_wrongly), scored_wrongly)


def prefers_the_first_action(argmax) -> bool:
    """Over 200 draws of a two-way tie, action 0 every time (probability 2^-200 if fair)."""
    rng, chosen = np.random.default_rng(0), set()
    for _ in range(200):
        actions = np.ones((1, 1), dtype=np.int64)
        argmax(np.ones((1, 1, 2)), rng, actions)
        chosen.add(int(actions[0, 0]))
    return chosen == {0}


def counts_wrongly(counter) -> bool:
    """Whether the declared column norm is below the true one, or a prefix is not a prefix sum."""
    for n in (1, 3, 7, 8, 9, 16, 100):
        candidate = counter(n)
        _, C = Tree(n).factors()
        if candidate.column_norm() < np.sqrt((C**2).sum(axis=0).max()) - 1e-9:
            return True
        state, total = candidate.init(2, 10), np.zeros(2)
        for t in range(n):
            item = np.array([t % 7, 1])
            total += item
            prefix, state = candidate.step(state, item, lambda node: np.zeros(2, dtype=np.int64))
            if not np.array_equal(prefix, total):
                return True
    return False


def more_than_claimed(response) -> bool:
    """Whether the exact epsilon, by enumeration of all outputs, exceeds the claim."""
    return Channel(listed.pmf(response(1.0, 5))).epsilon > 1.0 + 1e-9


# ---- linear problems ----------------------------------------------------------------------------

LINEAR = tacit.problem("low-rank", states=2, actions=2, dimension=2, horizon=2, seed=1)
LINEAR_TASK = LINEAR.task(users=3)


class AskAll:
    """Asks everything it may, for values that tell states apart."""

    def plan(self, task, release, ask, previous, streams):
        version = next_version(previous)
        if release.users:
            for h in (0, 1):
                ask(ValueQuery((version, "value", h), "value", h, np.array([0.0, 1.0])))
        return Publication(version, uniform_policy(2, 2, 2))


def violated_by_curator(kind: type[Curator]) -> bool:
    """Whether an audit of everything published refutes the claim (false alarms: below 0.001)."""
    statistic = CuratedTransitions(LINEAR_TASK)
    answers = Answers(
        {"value": np.array([2.0, 1.0])}, {"value": np.full(2, 10.0)}, 2, {"value": True}
    )
    price = Price.joint(statistic.pairs, 1.0)
    mechanism = kind(
        statistic, LINEAR_TASK, Independent(3), 10.0, answers, price,
        requested=(1.0, 1e-5),
    )  # fmt: skip
    assert 0.3 < mechanism.guarantee.epsilon < 2.0
    target = small.learner(LINEAR, BoundAgent(LINEAR_TASK, statistic, mechanism, AskAll()))
    rng = np.random.default_rng(4)
    found = audit_target(target, mechanism.guarantee.epsilon, 1e-5, 400, confidence=0.999, rng=rng)
    return found.verdict == "violated"


def gram_exceeds_sensitivity(kind: type[CuratedTransitions]) -> bool:
    """Whether two users' Gram matrices are further apart than declared."""
    problem = tacit.problem("synthetic-linear", horizon=2, actions=3)
    statistic = kind(problem.task(users=3))
    publication, points = Publication(0, uniform_policy(2, 2, 3)), []
    for states in itertools.product(range(2), repeat=3):
        for actions in itertools.product(range(3), repeat=2):
            out = np.zeros(statistic.layout.size, dtype=np.int64)
            person = Trajectory(np.array(states), np.array(actions), np.zeros(2))
            statistic.contribute(person, publication, 0, out)
            points.append((out * statistic.layout.units)[: statistic.layout.blocks[0].size])
    found = max(math.dist(one, two) for one in points for two in points)
    only = {"table": 0.0, "reward": 0.0}
    return found > statistic.sensitivity("l2", Relation.REPLACE_ONE, only)


# ---- exact laws, participations, charges --------------------------------------------------------


def answers_another_law(kind: type[OneCell]) -> bool:
    """Whether what the device sends about a move has not the law of its oracle (all tapes)."""
    of = cells.task(2)
    privatizer = kind(OneStep(of), of, requested_epsilon=2.0)
    public = cells.publication(2, asked=cells.always(2, 0, MOVE))
    sent = cells.contribution(privatizer, cells.lived([1, 0, 0], [0.0, 0.0]), 3, public)
    oracle = subset_law(privatizer.oracles[MOVE], cell_index(MOVE, 1, 0, 0, 2))
    found = secure_law(lambda: privatizer.randomize(sent, public, SecureNoise()))
    return found != {tuple(packing.pack(np.array(row))): mass for row, mass in oracle.items()}


def names_cells_by_another_law(kind: type[SubsetSelection]) -> bool:
    """The same of an oracle's secure reports."""
    oracle = kind.calibrate(0.6, 5)
    return secure_law(lambda: oracle.encode_secure(1)) != subset_law(oracle, 1)


def unpaid(said: Guarantee, true: float) -> bool:
    """Whether a guarantee states less than what all participations cost."""
    return said.epsilon < true * (1 - 1e-6)


def batch_is_unpaid(kind: type[BatchSums]) -> bool:
    of, statistic = taking_part(3), VisitCounts(taking_part(3))
    privatizer = kind(statistic, of, 50.0, requested=(1.0, 1e-5))
    return unpaid(privatizer.guarantee, one_draw(counts_l2(of.horizon) / 50.0, 3, 1e-5))


def report_is_unpaid(kind: type[LocalWeighted]) -> bool:
    of, statistic = taking_part(3), VisitCounts(taking_part(3))
    privatizer = kind(statistic, of, 50.0, requested=(1.0, 1e-5))
    return unpaid(privatizer.guarantee, fresh_noise(counts_l2(of.horizon) / 50.0, 3, 1e-5))


def declared_curator(kind: type[Curator], users: int, rounds: int, times: int = 1) -> Curator:
    of = replace(LINEAR.task(users=users), participations=times)
    statistic = CuratedTransitions(of)
    answers = Answers(
        {"value": np.array([2.0, 1.0])}, {"value": np.full(2, 1e4)}, rounds, {"value": True}
    )
    price = Price.joint(statistic.pairs, 1.0)
    return kind(
        statistic, of, Tree(users), 100.0, answers, price,
        requested=(1.0, 1e-5),
    )  # fmt: skip


def curator_is_unpaid(kind: type[Curator]) -> bool:
    once = declared_curator(Curator, 8, 3).mu
    return unpaid(declared_curator(kind, 8, 3, times=3).guarantee, one_draw(once, 3, 1e-5))


def answers_too_often(kind: type[Curator]) -> bool:
    """Whether a round passes after the last declared one of ten million."""
    declared = 10**7
    mechanism = declared_curator(kind, declared, declared)
    secret = mechanism.init()
    mechanism._pay(secret, declared)
    try:
        mechanism._pay(secret, declared + 1)
    except BudgetExhausted:
        return False
    return True


def charges_too_little(whole_charge) -> bool:
    """Whether a Gaussian report is charged less than its squared sensitivity over its variance."""
    text = LOCAL.format(users=400, batch=100, keep="false", more="").replace(
        'name = "tacit-local"\nepsilon = 4.0',
        'name = "ldp-obi"\nepsilon = 1.0\ndelta = 1e-5\nrandomizer = "gaussian"',
    )
    deployment = Deployment.parse(text, Path("/nowhere/file.toml"))
    bound = deployment.bound
    std = Fraction(bound.privatizer.scales["visits"])
    moved = Fraction(bound.statistic.sensitivity("l2", Relation.REPLACE_ONE))
    return whole_charge(deployment).as_gaussian() < (moved / std) ** 2


def calibrated_beyond(gaussian_mu) -> bool:
    """Whether the true delta, with many digits, is above a delta that was asked for."""
    mu, epsilon, delta = gaussian_mu(1e-8, 1e-300), 1e-8, 1e-300
    with mpmath.workdps(120):
        x = mpmath.mpf(epsilon) / mpmath.mpf(mu)
        half = mpmath.mpf(mu) / 2
        true = mpmath.ncdf(half - x) - mpmath.exp(epsilon) * mpmath.ncdf(-half - x)
        return bool(true > delta)
