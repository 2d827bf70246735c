"""The optimistic model of UCB-VI, and posterior draws against their closed-form law."""

import numpy as np
import pytest
from scipy import stats

from dense import dense
from tacit.kernels.public.posterior import Prior

# ---- optimism -----------------------------------------------------------------------------------


def optimistic(reward, visits, transitions, known, width, H, function=dense.optimistic_model):
    P, R = np.full(transitions.shape, np.nan), np.full((H, *visits.shape[1:]), np.nan)
    function(reward, visits, transitions, known, width, P, R)
    return P, R


def random_counts(seed, G, S=3, A=2):
    rng = np.random.default_rng(seed)
    transitions = rng.integers(0, 4, size=(G, S, A, S)) * rng.integers(0, 2, size=(G, S, A, 1))
    visits = transitions.sum(-1) + rng.integers(0, 2, size=(G, S, A))
    reward = rng.random((G, S, A)) * visits
    known = np.where(rng.random((G, S, A)) < 0.3, rng.random((G, S, A)), np.nan)
    return reward, visits.astype(float), transitions.astype(float), known


def test_an_optimistic_model_by_hand():
    """Pairs: well known; reached by the last stage only; never seen; never seen, reward known."""
    transitions = np.array([[[[3.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]])
    visits = np.array([[[9.0, 4.0], [0.0, 0.0]]])
    reward = np.array([[[4.5, 1.0], [0.0, 0.0]]])
    known = np.array([[[np.nan, np.nan], [np.nan, 0.75]]])
    P, R = optimistic(reward, visits, transitions, known, 6.0, H=3)
    assert np.array_equal(P, [[[[0.75, 0.25], [0, 0]], [[0, 0], [0, 0]]]])
    early = [[0.5 + 6 / 2, np.inf], [np.inf, np.inf]]  # the bonus counts the 4 transitions
    last = [[0.5 + 6 / 3, 0.25 + 6 / 2], [np.inf, 0.75]]  # and here the 9 and 4 visits
    assert np.array_equal(R, [early, early, last])


def test_a_known_reward_keeps_the_bonus_of_unknown_transitions():
    transitions, visits = np.array([[[[1.0]]]]), np.array([[[4.0]]])
    reward, known = np.array([[[4.0]]]), np.array([[[0.25]]])  # known beats observed
    _, R = optimistic(reward, visits, transitions, known, 0.5, H=2)
    assert R.ravel().tolist() == [0.25 + 0.5, 0.25]


def test_staged_counts_stay_in_their_stage():
    H = 3
    counts = random_counts(1, H)
    P, R = optimistic(*counts, 0.7, H)
    for h in range(H):
        one = [table[h : h + 1] for table in counts]
        alone_P, alone_R = optimistic(*one, 0.7, 2)  # stage 0 of 2 is early, stage 1 is last
        assert np.array_equal(P[h], alone_P[0])
        assert np.array_equal(R[h], alone_R[1 if h == H - 1 else 0])


@pytest.mark.parametrize("H", [1, 4])
@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_optimism_equals_its_plain_original(seed, staged, H):
    counts = random_counts(seed, H if staged else 1)
    compiled = optimistic(*counts, 1.3, H)
    with np.errstate(all="raise"):  # the plain original needs no IEEE division by zero
        plain = optimistic(*counts, 1.3, H, dense.optimistic_model.py_func)
    assert np.array_equal(compiled[0], plain[0]) and np.array_equal(compiled[1], plain[1])
    sums = compiled[0].sum(-1)
    assert np.allclose(sums[counts[2].sum(-1) > 0], 1.0) and not np.isnan(compiled[1]).any()


# ---- posterior ----------------------------------------------------------------------------------

DRAWS = 20_000
PRIOR = Prior(alpha0=0.5, lambda0=1.5, nu0=3.0, beta0=0.8)
N_P = np.array([[4.0, 0.0, 2.0], [0.0, 0.0, 0.0], [30.0, 10.0, 1.0]])  # counts of three "states"
N_R = np.array([7.0, 0.0, 41.0])
SUMS = np.array([3.5, 0.0, 10.0])
SQUARES = np.array([2.75, 0.0, 6.0])

ALPHA = PRIOR.alpha0 + N_P
LAMBDA = PRIOR.lambda0 + N_R
NU = PRIOR.nu0 + N_R / 2
MU = SUMS / LAMBDA
BETA = PRIOR.beta0 + SQUARES / 2 - SUMS**2 / (2 * LAMBDA)


def draw_models(known=np.nan, prior=PRIOR, seed=42, function=dense.sample_model, draws=DRAWS):
    """P [3, draws, 3] and R [3, draws]: the actions are the replicates."""

    def table(values):
        return np.ascontiguousarray(np.repeat(values[None, :, None], draws, axis=2))

    P, R = np.full((1, 3, draws, 3), np.nan), np.full((1, 3, draws), np.nan)
    told = np.broadcast_to(known, (1, 3, draws)).copy()
    rng = np.random.default_rng(seed)
    function(table(SUMS), table(SQUARES), table(N_R), table(N_P), told, prior, rng, P, R)
    return P[0], R[0], rng.random()


@pytest.fixture(scope="module")
def drawn():
    P, R, _ = draw_models()
    return P, R


def z_of_mean(sample, mean):
    return abs(sample.mean() - mean) / (sample.std(ddof=1) / np.sqrt(sample.size))


def z_of_variance(sample, variance):
    squares = (sample - sample.mean()) ** 2
    return abs(squares.mean() - variance) / (squares.std() / np.sqrt(sample.size))


def test_transition_means_and_variances(drawn):
    """Dirichlet(alpha0 + N_p). 18 statistics at 4.5 standard errors: 1.2e-4 over seeds."""
    P, _ = drawn
    np.testing.assert_allclose(P.sum(-1), 1.0, rtol=0, atol=1e-12)
    total = ALPHA.sum(-1)
    for s, n in np.ndindex(3, 3):
        mean = ALPHA[s, n] / total[s]
        variance = mean * (1 - mean) / (total[s] + 1)
        assert z_of_mean(P[s, :, n], mean) < 4.5
        assert z_of_variance(P[s, :, n], variance) < 4.5


def test_reward_means_and_variances(drawn):
    """r ~ t with 2 nu degrees of freedom, location mu, scale^2 beta / (nu lambda).

    Six statistics at 4.5 standard errors: 4e-5 over seeds (the fourth moment is finite).
    """
    _, R = drawn
    for s in range(3):
        scale2, degrees = BETA[s] / (NU[s] * LAMBDA[s]), 2 * NU[s]
        assert z_of_mean(R[s], MU[s]) < 4.5
        assert z_of_variance(R[s], scale2 * degrees / (degrees - 2)) < 4.5


def test_the_moment_checks_have_power(drawn):
    P, R = drawn
    wrong = N_P[0, 0] / N_P[0].sum()  # the prior forgotten
    assert z_of_mean(P[0, :, 0], wrong) > 4.5
    assert z_of_mean(R[0], SUMS[0] / N_R[0]) > 4.5
    rate_taken_for_scale = NU[0] / (BETA[0] * LAMBDA[0])
    assert z_of_variance(R[0], rate_taken_for_scale) > 4.5
    known_variance = BETA[0] / NU[0] / LAMBDA[0]  # tau fixed at its mean
    assert z_of_variance(R[0], known_variance) > 4.5


@pytest.mark.parametrize("s", range(3))
def test_whole_laws_of_one_cell(drawn, s):
    """Kolmogorov-Smirnov against beta and t marginals; each fails with 1e-4 over seeds."""
    P, R = drawn
    beta = stats.beta(ALPHA[s, 0], ALPHA[s, 1:].sum())
    scale = np.sqrt(BETA[s] / (NU[s] * LAMBDA[s]))
    assert stats.kstest(P[s, :, 0], beta.cdf).pvalue > 1e-4
    assert stats.kstest(R[s], stats.t(2 * NU[s], MU[s], scale).cdf).pvalue > 1e-4
    assert stats.kstest(R[s], stats.t(2 * NU[s], MU[s], 1.1 * scale).cdf).pvalue < 1e-4


def test_draws_of_different_cells_are_independent(drawn):
    """|correlation| < 4.5 / sqrt(n): 7e-6 per pair over seeds."""
    P, R = drawn
    for one, other in ((R[0], R[1]), (P[0, :, 0], P[2, :, 0]), (R[0, :-1], R[0, 1:])):
        assert abs(np.corrcoef(one, other)[0, 1]) < 4.5 / np.sqrt(DRAWS)


def test_known_rewards_are_used_and_transitions_still_drawn():
    known = np.array([0.25, np.nan, 1.0])[:, None]
    P, R, _ = draw_models(known, draws=500)
    assert (R[0] == 0.25).all() and (R[2] == 1.0).all()
    assert len(set(R[1])) == 500 and len(set(P[0, :, 0])) == 500


def test_tiny_concentrations_put_all_mass_on_one_state():
    """Every gamma underflows; the limit is a uniform choice of one state (error 1e-4)."""
    P, R, _ = draw_models(prior=Prior(1e-300, 1.0, 1.0, 1.0), draws=3000)
    assert not np.isnan(P).any() and not np.isnan(R).any()
    unseen = P[1]
    assert (np.sort(unseen, axis=-1) == [0.0, 0.0, 1.0]).all()
    assert stats.chisquare(unseen.sum(0)).pvalue > 1e-4
    assert (P[0, :, 1] == 0.0).all()  # never seen there, so never drawn
    np.testing.assert_allclose(P.sum(-1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha0", [1e-300, 1e-3, 0.5, 2.0])
def test_posterior_equals_its_plain_original(alpha0):
    known = np.where(np.arange(60) % 3, np.nan, 0.5)
    prior = PRIOR._replace(alpha0=alpha0)
    compiled = draw_models(known, prior, draws=60)
    plain = draw_models(known, prior, function=dense.sample_model.py_func, draws=60)
    np.testing.assert_allclose(compiled[0], plain[0], rtol=1e-12, atol=0)
    np.testing.assert_allclose(compiled[1], plain[1], rtol=1e-12, atol=0)
    assert compiled[2] == plain[2]  # the same number of draws was used


def test_the_generator_decides_everything():
    one, same, other = (draw_models(seed=seed, draws=50) for seed in (1, 1, 2))
    assert np.array_equal(one[0], same[0]) and np.array_equal(one[1], same[1])
    assert not np.array_equal(one[0], other[0])


def test_staged_tables_are_drawn_stage_by_stage():
    G, draws = 2, 4000
    rng = np.random.default_rng(3)
    transitions = np.zeros((G, 2, draws, 2))
    transitions[0, ..., 0], transitions[1, ..., 1] = 50.0, 50.0
    visits = np.full((G, 2, draws), 50.0)
    reward = np.zeros((G, 2, draws))
    reward[1] = 50.0
    P, R = np.full(transitions.shape, np.nan), np.full(visits.shape, np.nan)
    unknown = np.full(visits.shape, np.nan)
    dense.sample_model(reward, reward, visits, transitions, unknown, PRIOR, rng, P, R)
    assert P[0, ..., 0].mean() > 0.95 and P[1, ..., 1].mean() > 0.95
    assert abs(R[0].mean()) < 0.05 and abs(R[1].mean() - 50 / 51.5) < 0.05
