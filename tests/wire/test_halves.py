"""The device's half and the collector's make up ``encode``, and nothing impossible is collected."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.entropy import secure_law
from contracts.privatizer import worst_log_ratio
from tacit.agents import make_agent
from tacit.errors import InvalidInput
from tacit.grid import STEPS
from tacit.kernels.public.questions import KINDS, MOVE, REWARD, STEP
from tacit.kernels.raw.cells import cell_index
from tacit.planners.base import Streams
from tacit.privacy import Query, SecureNoise, SimulatedNoise
from tacit.privacy.base import Sent
from tacit.privacy.finite import packing
from tacit.privacy.finite.bits import UnaryEncoding
from tacit.privacy.finite.subset import SubsetSelection
from tacit.privacy.local.one_cell import DrawnCell, OneCell
from tacit.publication import Publication
from tacit.statistics.one_step import EachStep, OneStep
from tacit.task.task import Task
from tacit.trajectory import Trajectory
from tacit.wire import messages as documents

S, A, H = 3, 2, 4
TASK = Task("tabular", H, {"states": S, "actions": A}, True, 1000)
TASK_ID = "ab" * 32
AGENTS = {
    "one-cell": ("tacit-local", {"epsilon": 1.0}),
    "optimistic": ("tacit-local", {"epsilon": 3.0, "exploration": "optimistic"}),
    "laplace": ("ldp-obi", {"epsilon": 1.0}),
    "gaussian": ("ldp-obi", {"epsilon": 1.0, "delta": 1e-5, "randomizer": "gaussian"}),
    "response": ("ldp-obi", {"epsilon": 1.0, "randomizer": "randomized-response"}),
    "posterior": ("ldp-psrl", {"epsilon": 1.0}),
}


def bound(name):
    agent, parameters = AGENTS[name]
    return make_agent(agent, **parameters).bind(TASK)


def first_publication(agent):
    streams = Streams(np.random.default_rng(1), np.random.default_rng(2))
    release = agent.privatizer.release(agent.privatizer.init(), Query(0), SecureNoise())
    return agent.planner.plan(agent.task, release, None, None, streams)


def asking(publication, shares) -> Publication:
    """The same publication, with published shares of the questions."""
    return replace(publication, context={**publication.context, "questions": shares})


def later_publication(agent):
    """As after the first batch: where questions are asked at all, every kind is."""
    first = first_publication(agent)
    if not isinstance(agent.privatizer, OneCell):
        return first
    shares = np.cumsum(np.random.default_rng(4).dirichlet(np.ones(KINDS * H)))
    return asking(first, shares)


PUBLICATIONS = {"first": first_publication, "later": later_publication}


def someone(seed) -> Trajectory:
    rng = np.random.default_rng(seed)
    return Trajectory(rng.integers(S, size=H + 1), rng.integers(A, size=H), rng.random(H))


def contribution(agent, publication, coin, seed=0):
    out = np.zeros(agent.statistic.layout.size, dtype=np.int64)
    agent.statistic.contribute(someone(seed), publication, coin, out)
    return out


@pytest.mark.parametrize("when", PUBLICATIONS)
@pytest.mark.parametrize("name", AGENTS)
def test_the_two_halves_are_encode_bit_for_bit(name, when) -> None:
    agent = bound(name)
    publication = PUBLICATIONS[when](agent)
    for seed in range(30):
        coin = documents.coin(TASK_ID, f"{seed:032x}")
        made = contribution(agent, publication, coin, seed)
        whole = agent.privatizer.encode(
            made, publication, SimulatedNoise(np.random.default_rng(seed))
        )
        noise = SimulatedNoise(np.random.default_rng(seed))
        message = documents.device_message(agent, made, publication, coin, noise)
        arrived = documents.unpack_message(documents.pack_message(message))
        report = documents.local_privatizer(agent).collect(arrived, publication, coin)
        assert report.source == "secure" and whole.source == "simulated"
        assert np.array_equal(report.values, whole.values)


@pytest.mark.parametrize("when", PUBLICATIONS)
@pytest.mark.parametrize("name", AGENTS)
def test_folding_many_is_absorbing_one_after_the_other(name, when) -> None:
    agent = bound(name)
    publication = PUBLICATIONS[when](agent)
    coins = [documents.coin(TASK_ID, f"{k:032x}") for k in range(40)]
    messages = [
        documents.device_message(
            agent, contribution(agent, publication, c, k), publication, c, SecureNoise()
        )
        for k, c in enumerate(coins)
    ]
    single = agent.privatizer.init()
    for message, coin in zip(messages, coins, strict=True):
        report = documents.local_privatizer(agent).collect(message, publication, coin)
        single = agent.privatizer.absorb(single, report, 0)
    many = documents.local_privatizer(agent).fold(
        agent.privatizer.init(), Sent(messages[:13], publication, coins[:13])
    )
    many = documents.local_privatizer(agent).fold(
        many, Sent(messages[13:], publication, coins[13:])
    )
    assert np.array_equal(single.sums, many.sums) and single.sums.any()
    assert (single.users, single.source) == (many.users, many.source) == (40, "secure")


@pytest.mark.parametrize("kind", [STEP, MOVE, REWARD])
def test_what_a_device_sends_costs_exactly_epsilon_whatever_is_asked(kind) -> None:
    """Every tape of entropy through the device's whole half, at a step before the last.

    One of 18, 9 or 6 cells is named; an answer that was given again would be another law.
    """
    agent = bound("optimistic")
    shares = (np.arange(KINDS * H) >= KINDS * 1 + kind).astype(float)
    publication, coin = asking(first_publication(agent), shares), 5
    assert agent.statistic.question(publication, coin) == (1, kind)
    oracle = agent.privatizer.oracles[kind]
    laws = []
    for seed in (1, 2):
        made = contribution(agent, publication, coin, seed)

        def sent(made=made):
            return documents.device_message(agent, made, publication, coin, SecureNoise())

        laws.append(secure_law(sent))
        by_oracle: dict = {}
        cells = agent.statistic.layout.views(made)["cell"]
        for (s, rho, following), mass in np.ndenumerate(cells):
            if mass:
                cell = cell_index(kind, s, rho, following, S)
                for row, chance in secure_law(lambda c=cell: oracle.encode_secure(c)).items():
                    key = tuple(packing.pack(np.array(row)).tolist())
                    share = Fraction(int(mass), STEPS) * chance
                    by_oracle[key] = by_oracle.get(key, 0) + share
        assert laws[-1] == by_oracle
    assert worst_log_ratio(laws) <= oracle.epsilon <= agent.guarantee.epsilon


def test_a_drawn_step_travels_with_its_report() -> None:
    privatizer = DrawnCell(EachStep(TASK), TASK, requested_epsilon=1.0)
    publication = first_publication(bound("one-cell"))
    out = np.zeros(privatizer.statistic.layout.size, dtype=np.int64)
    privatizer.statistic.contribute(someone(3), publication, 0, out)
    steps = set()
    for seed in range(40):
        noise = SimulatedNoise(np.random.default_rng(seed))
        whole = privatizer.encode(out, publication, noise)
        noise = SimulatedNoise(np.random.default_rng(seed))
        message = privatizer.randomize(out, publication, noise)
        steps.add(int(message[0]))
        assert np.array_equal(privatizer.collect(message, publication, 0).values, whole.values)
    assert steps == set(range(H))
    for bad in (np.zeros(0, dtype=np.int64), np.array([H, 0]), np.array([-1, 0])):
        with pytest.raises(InvalidInput, match="begin with the number of its step"):
            privatizer.collect(bad, publication, 0)


ORACLES = [
    SubsetSelection.calibrate(1.0, 70),
    SubsetSelection.calibrate(1.0, 64),
    UnaryEncoding.calibrate(1.0, 66),
]


@pytest.mark.parametrize("oracle", ORACLES)
def test_packing_keeps_every_row(oracle) -> None:
    rows = np.array([oracle.encode_secure(5) for _ in range(20)])
    packed = np.array([packing.pack(row) for row in rows])
    assert packed.shape == (20, 1 if oracle.domain == 64 else 2)
    for row in packed:
        packing.inspect(row, oracle.domain, oracle.ones)
    assert np.array_equal(packing.unpack(packed, oracle.domain), rows)


@given(st.integers(1, 200), st.data())
@settings(max_examples=50, deadline=None)
def test_any_row_survives_packing(bits, data) -> None:
    row = np.array(data.draw(st.lists(st.integers(0, 1), min_size=bits, max_size=bits)))
    packed = packing.pack(row)
    packing.inspect(packed, bits, int(row.sum()))
    assert np.array_equal(packing.unpack(packed[None], bits)[0], row)


@given(st.integers(1, 130), st.integers(0, 2**32), st.data())
@settings(max_examples=100, deadline=None)
def test_many_pass_together_if_each_passes_alone(bits, seed, data) -> None:
    rng = np.random.default_rng(seed)
    rows = [packing.pack(rng.permutation(np.arange(bits) < 1)) for _ in range(5)]
    for _ in range(data.draw(st.integers(0, 2))):
        rows[data.draw(st.integers(0, 4))][-1] = data.draw(st.integers(-(2**63), 2**63 - 1))
    ones = data.draw(st.sampled_from([None, 1]))

    def alone(row) -> str | None:
        try:
            packing.inspect(row, bits, ones)
        except InvalidInput as error:
            return str(error)
        return None

    wrong = [said for said in map(alone, rows) if said is not None]
    if wrong:
        with pytest.raises(InvalidInput) as caught:
            packing.inspect_all(rows, bits, ones)
        assert str(caught.value) == wrong[0]
    else:
        assert np.array_equal(packing.inspect_all(rows, bits, ones), np.array(rows))


def asks_jointly(agent, publication) -> int:
    """A coin whose question is about a whole step."""
    return next(c for c in range(1000) if agent.statistic.question(publication, c)[1] == 0)


def test_impossible_reports_on_a_cell_are_refused() -> None:
    agent = bound("one-cell")
    publication = first_publication(agent)
    coin = asks_jointly(agent, publication)
    oracle = agent.privatizer.oracles[0]
    assert isinstance(oracle, SubsetSelection) and oracle.domain == 18
    good = packing.pack(oracle.encode_secure(4))
    documents.local_privatizer(agent).inspect(good, publication, coin)
    for bad, words in [
        (np.append(good, 0), "18 bits travel in 1 whole numbers"),
        (good[:0], "18 bits travel"),
        (good[None], "shape"),
        (np.array([2**18]), "above the last one, 17"),
        (np.array([-1]), "above the last one, 17"),
        (np.array([-(2**63)]), "above the last one"),
        (np.array([0]), "names 0 cells"),
        (np.array([(1 << oracle.size + 1) - 1]), f"names {oracle.size + 1} cells"),
    ]:
        privatizer = documents.local_privatizer(agent)
        for judge in (privatizer.inspect, privatizer.collect):
            with pytest.raises(InvalidInput, match=words):
                judge(bad, publication, coin)
        secret = agent.privatizer.init()
        with pytest.raises(InvalidInput, match=words):
            documents.local_privatizer(agent).fold(
                secret, Sent([good, bad], publication, [coin, coin])
            )
        with pytest.raises(InvalidInput, match=words):
            agent.privatizer.inspect_all(Sent([good, bad, good], publication, [coin] * 3))
        assert secret.users == 0 and not secret.sums.any(), "a refused batch leaves no trace"


def test_a_question_that_the_guarantee_does_not_cover_is_not_collected() -> None:
    statistic = OneStep(TASK)
    privatizer = OneCell(statistic, TASK, requested_epsilon=1.0, kinds=(0, 2))
    publication = first_publication(bound("one-cell"))
    only_moves = (np.arange(3 * H) >= 1).astype(float)
    publication = replace(publication, context={"questions": only_moves})
    coin = next(c for c in range(5000) if statistic.question(publication, c)[1] == 1)
    message = packing.pack(privatizer.oracles[1].encode_secure(0))
    with pytest.raises(InvalidInput, match="the guarantee covers only step, reward"):
        privatizer.inspect(message, publication, coin)
    lived = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.contribute(statistic.worst_pair()[0], publication, coin, lived)
    with pytest.raises(InvalidInput, match="the guarantee covers only step, reward"):
        privatizer.randomize(lived, publication, SecureNoise())
    with pytest.raises(InvalidInput, match="the guarantee covers only step, reward"):
        privatizer.relative_shift(lived, lived, publication)


@pytest.mark.parametrize("name", ["laplace", "gaussian", "posterior", "response"])
def test_impossible_vectors_are_refused(name) -> None:
    agent = bound(name)
    publication = first_publication(agent)
    reach = agent.privatizer.message_bounds(publication)
    documents.local_privatizer(agent).inspect(reach, publication, 0)
    for bad in (reach[:-1], np.append(reach, 0), reach[None]):
        with pytest.raises(InvalidInput, match="entries"):
            documents.local_privatizer(agent).collect(bad, publication, 0)
    for place, value in ((0, int(reach[0]) + 1), (5, -int(reach[5]) - 1), (2, -(2**63))):
        bad = np.zeros_like(reach)
        bad[place] = value
        with pytest.raises(InvalidInput, match=f"entry {place} of the report is {value}"):
            documents.local_privatizer(agent).collect(bad, publication, 0)
    assert TASK.users * int(reach.max()) < 2**63
    if name == "response":
        with pytest.raises(InvalidInput, match="but it counts"):
            documents.local_privatizer(agent).collect(-reach, publication, 0)


def test_noise_never_reaches_the_reach() -> None:
    """The chance of a false alarm is below 1e-20; noise ten times too loud is refused at once."""
    agent = bound("laplace")
    publication = first_publication(agent)
    rng = np.random.default_rng(0)
    reach = agent.privatizer.message_bounds(publication)
    noise = np.empty_like(reach)
    for _ in range(200):
        SimulatedNoise(rng).fill(agent.privatizer.noise_law, noise)
        assert (np.abs(noise) < reach).all()
    with pytest.raises(InvalidInput):
        documents.local_privatizer(agent).collect(10 * noise + 5 * reach, publication, 0)


def test_who_is_not_served() -> None:
    for name, parameters in (
        ("psrl", {}),
        ("tacit-joint", {"epsilon": 1.0}),
        ("shuffle-obi", {"epsilon": 1.0, "calibration": "tight"}),
    ):
        agent = make_agent(name, **parameters).bind(TASK)
        with pytest.raises(InvalidInput, match="choose tacit-local"):
            documents.local_privatizer(agent)
    many = Task("tabular", H, {"states": S, "actions": A}, True, 10**10)
    crowded = make_agent("ldp-obi", epsilon=1.0).bind(many)
    with pytest.raises(InvalidInput, match="could leave the 64-bit integers if devices misbehave"):
        documents.local_privatizer(crowded)
