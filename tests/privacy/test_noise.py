"""Noise sources: what each draws, what each refuses."""

import numpy as np
import pytest
from scipy import stats

from contracts.replay import ReplayNoise
from contracts.sampler import misfits
from tacit.errors import InvalidInput
from tacit.kernels.raw.noise import draw_bounded
from tacit.privacy import GridLaw, SecureNoise, SimulatedNoise, ZeroNoise
from tacit.privacy.finite.bits import UnaryEncoding
from tacit.privacy.finite.subset import KaryResponse

KARY = KaryResponse.calibrate(1.5, 4)


def simulated(seed=0):
    return SimulatedNoise(np.random.default_rng(seed))


@pytest.mark.parametrize("source", ["simulated", "secure"])
def test_coins_have_the_chance_they_are_given(source):
    """Exact binomial test at 1e-6; half and twice the chance would be refused."""
    noise = SecureNoise() if source == "secure" else simulated(3)
    for chance, of in ((1, 4), (3, 5)):
        happened = sum(noise.happens(chance, of) for _ in range(2000))
        assert stats.binomtest(happened, 2000, chance / of).pvalue > 1e-6
        assert stats.binomtest(happened, 2000, chance / of / 2).pvalue < 1e-6
    assert not any(noise.happens(0, 7) for _ in range(50))
    assert all(noise.happens(7, 7) for _ in range(50))


def test_a_secure_coin_is_one_comparison_of_integers(monkeypatch):
    for drawn, expected in ((0, True), (4, True), (5, False), (16, False)):
        monkeypatch.setattr("secrets.randbelow", lambda of, drawn=drawn: drawn)
        assert SecureNoise().happens(5, 17) is expected


def test_a_simulated_coin_uses_one_uniform_whatever_the_chance():
    for chance in (0, 1, 5):
        rng, fresh = np.random.default_rng(2), np.random.default_rng(2)
        SimulatedNoise(rng).happens(chance, 5)
        fresh.random()
        assert rng.random() == fresh.random()


def test_simulated_reports_are_those_of_the_randomizer():
    for oracle in (KARY, UnaryEncoding.calibrate(1.0, 4)):
        report = simulated(5).randomize(oracle, 2)
        assert np.array_equal(report, oracle.encode(2, np.random.default_rng(5)))


def test_secure_reports_take_the_exact_sampler_and_no_seed(monkeypatch):
    monkeypatch.setattr("secrets.randbits", lambda bits: 0)  # the coin falls on the own cell
    assert SecureNoise().randomize(KARY, 2).tolist() == [0, 0, 1, 0]
    assert SecureNoise().source == "secure"


def test_replay_hands_out_coins_and_reports_in_order_and_once():
    recorded = np.array([0, 1, 0, 0])
    noise = ReplayNoise([np.array(3), recorded, np.array([3])])
    assert noise.happens(4, 9)
    report = noise.randomize(KARY, 2)
    report[:] = 7  # a copy: the recording cannot be written to
    assert recorded.tolist() == [0, 1, 0, 0]
    assert not noise.happens(3, 9)
    for ask in (lambda: noise.happens(1, 2), lambda: noise.randomize(KARY, 0)):
        with pytest.raises(InvalidInput, match="nothing is ever drawn twice"):
            ask()


def test_silence_refuses_everything():
    with pytest.raises(InvalidInput, match="its privatizer randomizes; pass a noise source"):
        ZeroNoise().randomize(KARY, 0)
    with pytest.raises(InvalidInput, match="draws a coin; pass a noise source"):
        ZeroNoise().happens(1, 2)


def test_bounded_noise_is_a_law_of_the_grid_in_simulation_only():
    law, out = GridLaw("bounded", np.array([1e6, 2e6] * 500)), np.zeros(1000, dtype=np.int64)
    simulated(1).fill(law, out)
    assert np.abs(out[::2]).max() < 1e6 < np.abs(out[1::2]).max() < 2e6
    with pytest.raises(InvalidInput, match="no exact sampler for bounded noise"):
        SecureNoise().fill(law, out)


@pytest.mark.parametrize("kind", ["laplace", "gaussian", "bounded"])
def test_simulated_noise_keeps_its_law_up_to_the_largest_scale(kind):
    """The same draws, larger: nothing is cut off on the way to whole steps."""
    small = np.full(2000, 2.0**20)
    expected, out = (np.zeros(2000, dtype=np.int64) for _ in range(2))
    simulated(7).fill(GridLaw(kind, small), expected)
    for power in (31, 33, 45, 53):
        simulated(7).fill(GridLaw(kind, np.full(2000, 2.0**power)), out)
        assert np.allclose(out / 2.0**power, expected / 2.0**20, rtol=0, atol=2.0**-20)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_secure_noise_has_exactly_its_scale_where_cells_differ(kind):
    assert not misfits(SecureNoise(), kind)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_the_exact_sampler_is_asked_for_the_scale_of_the_law(kind, monkeypatch):
    """Every cell gets a draw of its own scale: the sampler is replaced by one that tells it."""
    asked = []

    class Sampler:
        def __getattr__(self, name):
            if name in ("make_laplace", "make_gaussian"):

                def make(domain, metric, scale):
                    asked.append((name.removeprefix("make_"), scale))
                    return lambda zeros: [z + round(1000 * scale) for z in zeros]

                return make
            return self if name == "m" else lambda *args, **kwargs: None

    monkeypatch.setattr("tacit.privacy.noise._opendp", Sampler)
    scales = np.array([3.0, 0.7, 3.0, 1e6 + 1 / 3, 0.7, 12.5])
    out = np.zeros(6, dtype=np.int64)
    SecureNoise().fill(GridLaw(kind, scales), out)
    assert {name for name, _ in asked} == {kind}
    assert sorted(scale for _, scale in asked) == sorted(set(scales.tolist()))
    assert out.tolist() == [round(1000 * scale) for scale in scales]


def test_simulated_draws_are_the_generators_times_the_scale():
    """Every cell its own scale and fresh draws, rounded to the grid and nothing else."""
    scales = np.array([3.0, 0.7, 65536.0, 1e6 + 1 / 3, 12.5] * 40)
    rng = {kind: np.random.default_rng(6) for kind in ("laplace", "gaussian", "bounded")}
    exponentials = rng["laplace"].standard_exponential((len(scales), 2))
    draws = {
        "laplace": exponentials[:, 0] - exponentials[:, 1],
        "gaussian": rng["gaussian"].standard_normal(len(scales)),
        "bounded": np.array([draw_bounded(rng["bounded"]) for _ in scales]),
    }
    for kind, draw in draws.items():
        out = np.zeros(len(scales), dtype=np.int64)
        simulated(6).fill(GridLaw(kind, scales), out)
        assert np.array_equal(out, np.rint(scales * draw).astype(np.int64))
