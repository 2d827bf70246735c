"""Figures 8 and 9: what Laplace noise does to the reward sum of state 0, action 1."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from tacit.agents.catalogue import make_agent
from tacit.arrays import Array, IntArray
from tacit.errors import InvalidInput
from tacit.experiment import bind
from tacit.grid import GRID
from tacit.learner import BoundAgent
from tacit.privacy.local.additive import LocalAdditive
from tacit.privacy.noise import GridLaw, SimulatedNoise
from tacit.problems import TabularMDP
from tacit.problems.tabular_benchmarks import random_mdp
from tacit.simulation.checkpoints import checkpoints
from tacit.simulation.loops.visits import VisitRun
from tacit.streams import stream
from tacit_lab.figures import draw
from tacit_lab.figures.figure import Claim, Evidence, Figure, Measurement, Size
from tacit_lab.figures.judge import every, judged, judging
from tacit_lab.papers.tabular_ldp.learners import EPSILONS, HORIZON, screened, true_epsilon

STATE, ACTION = 0, 1
EPSILON_9 = 20.0
CONFIDENCE = 0.999
"""Of the interval that a standard deviation is held against."""

SIGMAS = 4.0
"""Standard errors that a mean may be off."""


def _cell(bound: BoundAgent) -> int:
    """Where R(0, 1) sits in the flat vector of a report."""
    cells = np.arange(bound.statistic.layout.size)
    return int(bound.statistic.layout.views(cells)["reward"][0, STATE, ACTION])


def _noise(
    problem: TabularMDP, epsilon: float, shape: tuple[int, int], source: np.random.Generator
) -> IntArray:
    """What LDP-OBI as published adds to R(0, 1), in grid steps [repetitions, users]."""
    agent = make_agent("ldp-obi", epsilon=epsilon, calibration="paper")
    bound = bind(problem, agent, shape[1])
    assert isinstance(bound.privatizer, LocalAdditive)
    law = GridLaw("laplace", np.full(shape[1], bound.privatizer.noise_law.scales[_cell(bound)]))
    noise, draws = SimulatedNoise(source), np.empty(shape, dtype=np.int64)
    for row in draws:
        noise.fill(law, row)
    return draws


def summed_rewards(
    seed: int, episodes: int, repetitions: int, epsilons: list[float]
) -> dict[str, Array]:
    """R(0, 1) after UCB-VI, exact and with the noise that its users would have added.

    Args:
        seed: of the random MDP.
        episodes: users of one run.
        repetitions: runs.
        epsilons: privacy levels.

    Returns:
        "exact" [repetitions] and "noisy" [epsilons, repetitions].
    """
    problem = random_mdp(seed=seed)
    exact = np.array([_ucb_vi_reward(problem, episodes, run) for run in range(repetitions)])
    noisy = []
    for epsilon in epsilons:
        source = stream(seed, 0, f"figure 8, epsilon {epsilon:g}")
        draws = _noise(problem, epsilon, (repetitions, episodes), source)
        noisy.append(exact + draws.sum(axis=1) * GRID)
    return {"exact": exact, "noisy": np.array(noisy)}


def _ucb_vi_reward(problem: TabularMDP, episodes: int, run: int) -> float:
    """The raw sum of the simulated users' rewards, which the figure compares with the noisy one."""
    bound = bind(problem, make_agent("ucb-vi"), episodes)
    learner = VisitRun(problem, bound, 0, run, checkpoints(episodes))
    learner.advance(episodes)
    return float(learner.raw.sums[_cell(bound)] * bound.statistic.layout.units[_cell(bound)])


def figure_8_parts(size: Size) -> list[Measurement]:
    """One measurement, on the first MDP where R(0, 1) is not always zero."""
    seed = next(s for s in screened(20)[0] if random_mdp(seed=s).R[0, STATE, ACTION] > 0)
    sizes = {"seed": seed, "episodes": size.episodes, "repetitions": size.runs}
    parameters = {**sizes, "epsilons": list(EPSILONS)}
    return [Measurement("sums", "UCB-VI and noise", summed_rewards, parameters)]


def figure_8_picture(evidence: Evidence) -> draw.Picture:
    """One histogram per level over the noiseless one."""
    sums = evidence.arrays("sums")
    picture, panels = draw.canvas(len(EPSILONS), "R(0,1) summed over users, noisy and exact")
    for axes, epsilon, noisy in zip(panels, EPSILONS, sums["noisy"], strict=True):
        axes.hist(noisy, bins=40, alpha=0.6, label=f"with noise, epsilon asked for {epsilon:g}")
        axes.hist(sums["exact"], bins=40, alpha=0.6, label="exact, not private")
        axes.set_title(f"true epsilon {true_epsilon(epsilon):.3g}", fontsize="medium")
        axes.set_xlabel("sum of rewards in state 0, action 1")
        draw.legend_below(axes)
    return picture


@judging
def noise_has_its_size(evidence: Evidence, which: int) -> Claim:
    """The standard deviation of the noise in the sum."""
    sums = evidence.arrays("sums")
    noise = sums["noisy"][which] - sums["exact"]
    std = float(np.sqrt((noise**2).mean()))
    n, epsilon = len(noise), EPSILONS[which]
    expected = np.sqrt(evidence.size.episodes) * np.sqrt(2) * 6 * HORIZON / epsilon
    tail = (1 - CONFIDENCE) / 2
    low, high = (float(expected * np.sqrt(chi2.ppf(q, n) / n)) for q in (tail, 1 - tail))
    return judged(
        f"epsilon {epsilon:g}: the noisy sum varies by sqrt(2k) 6H / epsilon",
        f"{expected:.4g}; within {low:.4g} to {high:.4g} for {n} repetitions",
        {"std of the noise": std, "std of the exact sum": float(sums["exact"].std())},
        low <= std <= high,
        f"outside the {CONFIDENCE:.1%} interval: the noise is another one",
    )


@judging
def much_more_variation(evidence: Evidence, which: int) -> Claim:
    """What the paper reads off the histograms."""
    sums = evidence.arrays("sums")
    over = float(sums["noisy"][which].std()) / max(float(sums["exact"].std()), 1e-9)
    return judged(
        f"epsilon {EPSILONS[which]:g}: there is much more variation in the private statistics",
        "standard deviation more than twice the exact one",
        {"noisy std / exact std": over},
        over > 2,
        "the noise is of the order of what the learner's own choices vary",
    )


FIGURE_8 = Figure(
    id="tabular-ldp/figure-8",
    title="what Laplace noise does to the sum of rewards after 1000 episodes of UCB-VI",
    full=Size(1000, 1, 1000, "12 s of processor time (measured)"),
    quick=Size(1000, 1, 200, "10 s of processor time (measured)"),
    parts=figure_8_parts,
    draw=figure_8_picture,
    claims=tuple(
        judge(which)
        for judge in (noise_has_its_size, much_more_variation)
        for which in range(len(EPSILONS))
    ),
)


def privatized_rewards(sums: list[int], draws: int, epsilon: float) -> dict[str, Array]:
    """R~(0, 1) of single users whose true sums are given.

    Args:
        sums: the true R_X(0, 1) of each user.
        draws: reports per user.
        epsilon: privacy asked for.
    """
    problem = random_mdp()
    if not all(0 <= value <= problem.horizon for value in sums):
        raise InvalidInput(f"one user's rewards sum up to 0..{problem.horizon}, got {sums}")
    noise = _noise(problem, epsilon, (len(sums), draws), stream(0, 0, "figure 9"))
    return {"reports": np.array(sums)[:, np.newaxis] + noise * GRID, "sums": np.array(sums)}


def figure_9_parts(size: Size) -> list[Measurement]:
    """Users who were never, once and always rewarded in state 0, action 1."""
    parameters = {"sums": [0, 1, 2], "draws": size.runs, "epsilon": EPSILON_9}
    return [Measurement("reports", "Laplace reports", privatized_rewards, parameters)]


def figure_9_picture(evidence: Evidence) -> draw.Picture:
    """The histograms of two trajectories, one and two rewards apart."""
    arrays = evidence.arrays("reports")
    picture, panels = draw.canvas(
        2,
        f"R(0,1) of one user after Laplace noise, epsilon asked for {EPSILON_9:g}, "
        f"true epsilon {true_epsilon(EPSILON_9):.3g}",
    )
    for axes, other in zip(panels, (1, 2), strict=True):
        for which, name in ((0, "X"), (other, "X'")):
            value = int(arrays["sums"][which])
            drawn, label = arrays["reports"][which], f"{name}: true sum {value}"
            axes.hist(drawn, bins=80, range=(-4, 6), alpha=0.6, density=True, label=label)
        axes.set_title(f"shift {other}", fontsize="medium")
        axes.set_xlabel("reported sum of rewards in state 0, action 1")
        draw.legend_below(axes)
    return picture


def scale_and_shift(evidence: Evidence) -> Claim:
    """The law of one report."""
    arrays = evidence.arrays("reports")
    b, draws = 6 * HORIZON / EPSILON_9, arrays["reports"].shape[1]
    scale = float(np.abs(arrays["reports"] - arrays["sums"][:, np.newaxis]).mean())
    means = arrays["reports"].mean(axis=1)
    shift = float(means.max() - means.min())
    slack = SIGMAS / np.sqrt(draws)  # of one mean over the draws, relative to b
    return judged(
        "Laplace noise of scale 6H / epsilon hides a shift of at most H",
        f"scale {b:g}, shift at most {HORIZON}",
        {"scale": scale, "largest shift": shift},
        bool(abs(scale / b - 1) < slack and shift < HORIZON + 2 * b * slack),
        "the reports follow another law",
    )


def _right_guesses(evidence: Evidence) -> dict[str, float]:
    """Share of right guesses with the best threshold, midway between the two true values."""
    first, *others = evidence.arrays("reports")["reports"]
    shares = {}
    for shift, second in enumerate(others, 1):
        middle = (np.median(first) + np.median(second)) / 2
        right = float(((first < middle).mean() + (second >= middle).mean()) / 2)
        shares[f"right guesses, shift {shift}"] = right
    return shares


almost_indistinguishable = every(
    "after the noise, two distinct trajectories are almost indistinguishable",
    "whose report it is can be guessed right in less than 60% of the cases",
    _right_guesses,
    lambda share: share < 0.6,
    "at epsilon 20 one reward more is 1.7 noise scales: one cell of one report gives the "
    "two trajectories away (exact chances 1 - exp(-shift/1.2)/2: 0.783 and 0.906)",
)
"""Whether two trajectories look alike, judged by the best guess from one report."""

FIGURE_9 = Figure(
    id="tabular-ldp/figure-9",
    title="one report of two different trajectories at epsilon 20",
    full=Size(1, 1, 100_000, "2 s of processor time (measured)"),
    quick=Size(1, 1, 10_000, "3 s of processor time (measured)"),
    parts=figure_9_parts,
    draw=figure_9_picture,
    claims=(scale_and_shift, almost_indistinguishable),
)
