import numpy as np
import pytest

import tacit
from tacit.agents import OBI, LdpOBI
from tacit.errors import InvalidInput

PROBLEM = tacit.problem("random-mdp", seed=1)


def test_it_is_not_private_and_learns() -> None:
    result = tacit.simulate(PROBLEM, OBI(), 50000, runs=2)
    assert result.guarantee.model == "none" and "NO PRIVACY" in str(result.guarantee)
    noisy = tacit.simulate(PROBLEM, LdpOBI(20.0), 50000, runs=2)
    assert (result.regret[:, -1] < 0.2 * noisy.regret[:, -1]).all()


def test_a_tiny_bonus_needs_no_more_than_one_look_at_a_deterministic_problem() -> None:
    """With counts exact, r~ is exact after one visit; the bonus alone drives exploration."""
    chain = tacit.TabularMDP(P=[[[1.0], [1.0]]], R=[[0.2, 0.9]], horizon=1)
    result = tacit.Experiment(problem=chain, agent=OBI(), episodes=20_000, checkpoints=1).run()
    assert np.diff(result.regret[0])[-2000:].mean() < 0.01


def test_better_widths_learn_faster() -> None:
    regret = [
        tacit.simulate(tacit.problem("random-mdp", seed=3), OBI(width=width), 30_000).regret[0, -1]
        for width in ("paper", "corrected", "tight")
    ]
    assert regret[0] > regret[1] > regret[2]


def test_bad_parameters() -> None:
    with pytest.raises(InvalidInput, match="width = 'loose'"):
        OBI(width="loose")
    with pytest.raises(InvalidInput, match="beta = 2"):
        OBI(beta=2.0)
    with pytest.raises(InvalidInput, match="takes no epsilon"):
        tacit.agent("obi", epsilon=1.0)
