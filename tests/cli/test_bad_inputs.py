"""A hundred mistakes, at the command line and in Python: each gets a sentence, none a traceback.

A message says what was wrong and what is expected or what to do; the rows hold the part that does.
"""

import re
from collections.abc import Callable

import numpy as np
import pytest

import tacit
from tacit.errors import InvalidInput

TYPED = [
    ("run river-swin psrl", "unknown problem 'river-swin'; did you mean 'river-swim'?"),
    ("run river-swim prsl", "unknown agent 'prsl'; did you mean 'psrl'?"),
    ("run river-swim xyz", "unknown agent 'xyz'; known: "),
    ("run river-swim psrl -P state=4", "no parameter 'state'; did you mean 'states'?"),
    ("run river-swim psrl -A alpha=4", "no parameter 'alpha'; did you mean 'alpha0'?"),
    ("run river-swim uniform -A x=4", "no parameter 'x'; it takes none"),
    ("run river-swim psrl -P states=four", "states = 'four', but it must be a whole number"),
    ("run river-swim psrl -P states=1", "states = 1, but it must be a whole number >= 2"),
    ("run river-swim psrl -P states=2.5", "states = '2.5', but it must be a whole number"),
    ("run river-swim psrl -P states", "-P 'states', but it must look like -P name=value"),
    ("run river-swim psrl -P states=3 -P states=4", "-P states is given twice"),
    ("run river-swim psrl -P kernel=vtx", "kernel = 'vtx', but it must be one of classic, vtr"),
    ("run river-swim psrl -P reward_scale=2", "reward_scale = 2, but it must be a finite number"),
    ("run river-swim psrl -P inhomogeneous=maybe", "must be true or false"),
    ("run river-swim psrl --episodes 0", "episodes = 0, but it must be a whole number >= 1"),
    ("run river-swim psrl --episodes nan", "--episodes = 'nan', but it must be a whole number"),
    ("run river-swim psrl --episodes inf", "--episodes = 'inf', but it must be a whole number"),
    ("run river-swim psrl --runs 0", "runs = 0, but it must be a whole number >= 1"),
    ("run river-swim psrl --seed=-1", "seed = -1, but it must be a whole number >= 0"),
    ("run river-swim psrl --workers 0", "workers = 0, but it must be a whole number >= 1"),
    ("run river-swim psrl --checkpoints x", "--checkpoints = 'x', but it must be a whole number"),
    ("run river-swim psrl --reveal rewards", "no fact 'rewards' to reveal; did you mean 'reward'?"),
    ("run river-swim psrl --epsilon 1", "psrl adds no noise and takes no epsilon"),
    ("run river-swim psrl --delta 1e-5", "psrl adds no noise and takes no delta"),
    (
        "run river-swim tacit-local --epsilon 1 --delta 1e-5",
        "tacit-local is private, but takes no delta: leave it out; it takes epsilon, exploration",
    ),
    ("run river-swim psrl -A calibration=paper", "psrl has no parameter 'calibration'"),
    ("run river-swim psrl -A alpha0=0", "alpha0 = 0, but it must be a finite number >= 1e-09"),
    ("run river-swim ucb-vi -A bonus_scale=nan", "bonus_scale = nan, but it must be a finite"),
    (
        "run river-swim ucb-vi -A beta=1",
        "beta = 1, but it must be a finite number >= 1e-100",
    ),
    ("run river-swim psrl --plot x.docx", "it must end in .png, .pdf, .svg"),
    ("run river-swim ucb-vi -A bonus_scale=1e300", "bonus_scale = 1e+300"),
    ("run river-swim ucb-vi -A beta=1e-320", "beta = "),
    ("run hard-tree psrl -P epsilon=1e-300 -P users=1e6", "epsilon = 1e-300"),
    ("run river-swim psrl --plot .png", "it must end in"),
    ("run river-swim psrl --reveal transitions", "psrl makes no use of transitions"),
    ("run random-mdp psrl -P states=1e9", "at most 200,000,000 fit"),
    ("run river-swim psrl -P horizon=1e9", "at most 200,000,000 fit"),
    ("run river-swim uniform --episodes 1e30", "must be a whole number >= 1 and <= 1e+15"),
    ("run river-swim uniform --runs 1e9", "runs = 1000000000"),
    ("run river-swim uniform --episodes 1e9 --checkpoints 1", "record fewer of them"),
    ("run river-swim psrl --out /proc/x", "cannot make the folder /proc/x"),
    ("run river-swim psrl --plot /proc/x/y.png", "cannot make the folder /proc/x"),
    ("run river-swim psrl --episodes 1e14", "could leave the 64-bit integers"),
    ("run gym:FrozenLake-v1 psrl", "gym:FrozenLake-v1 needs the parameter 'horizon'"),
    ("run gym:Nope-v0 psrl -P horizon=5", "Gymnasium could not make 'Nope-v0'"),
    ("run gym:Blackjack-v1 psrl -P horizon=5", "declare the least and the largest reward"),
    ("run hard-tree psrl -P states=16", "are the nearest"),
    ("run hard-tree psrl -P gap=0.1 -P epsilon=1", "either gap, or epsilon together with users"),
    ("run river-swim", "Missing argument 'AGENT'"),
    ("run river-swim psrl --nope", "No such option: --nope"),
    ("walk", "there is no command 'walk'"),
    ("list agent", "unknown list 'agent'; did you mean 'agents'?"),
    ("run remap-walk lsvi-ucb", "an agent for mixtures, such as tacit-joint"),
    ("run synthetic-linear ucrl-vtr", "an agent for linear MDPs, such as tacit-linear"),
    (
        "run river-swim tacit-local --epsilon 1 --delta 1e-5",
        "tacit-local is private, but takes no delta: leave it out; it takes epsilon, exploration",
    ),
    ("run", "Missing argument 'PROBLEM'"),
    ("run --resume nowhere", "nowhere holds no unfinished run"),
    ("run --resume x --out y", "leave --out out"),
    ("show nothing.json", "cannot read the policy nothing.json"),
    ("show a.json b.json", "a.json"),
    ("show .", "holds no result"),
    ("run psrl river-swim", "psrl is an agent, but the problem comes first"),
    ("audit tacit-local random-mdp", "tacit-local is an agent, but the problem comes first"),
    ("guarantee river-swim random-mdp", "random-mdp is a problem, but the problem comes first"),
    ("guarantee river-swim tacit-local", "needs an epsilon (there is no default): give one"),
    ("guarantee river-swim tacit-local --epsilon 0", "epsilon = 0, but it must be a finite number"),
    ("guarantee river-swim tacit-local --epsilon inf", "epsilon = inf, but it must be a finite"),
    ("guarantee river-swim tacit-joint --epsilon 1 --delta 1", "delta = 1, but it must be"),
    (
        "guarantee river-swim tacit-joint --epsilon one",
        "--epsilon = 'one', but it must be a number",
    ),
    ("guarantee river-swim ldp-obi --epsilon 1 -A epsilon=2", "epsilon is given twice: by -A and"),
    ("guarantee river-swim psrl -R participations=0", "participations = 0, but it must be a whole"),
    ("guarantee river-swim psrl -R participations=x", "-R participations = 'x', but it must be a"),
    ("run river-swim psrl -R participations=1.5", "-R participations = '1.5', but it must be a"),
    ("run river-swim psrl -R participations=soon", "'soon', but it must be a whole number, or any"),
    ("run river-swim psrl -R participations=any", "may not be any number where every one is"),
    ("run river-swim tacit-joint --epsilon 1 -R participations=any", "or -R people=1000"),
    ("run river-swim psrl -R people=10", "people and attendance are about people who come back"),
    ("run river-swim psrl -R law=rounds", "people and attendance are about people who come"),
    ("run river-swim psrl -R participations=3 -R people=0", "people = 0, but it must be a whole"),
    (
        "run river-swim psrl -R participations=3 -R people=10 --episodes 31",
        "10 people who may take part up to 3 times do not come 31 times by the law 'rounds'",
    ),
    (
        "run river-swim psrl -R participations=3 -R law=never",
        "attendance = 'never', but it must be one of rounds, anytime, bursts, few-often",
    ),
    (
        "guarantee river-swim psrl -R teaches=twice",
        "-R teaches = 'twice', but it must be one of first, lifetime, every",
    ),
    (
        "guarantee river-swim tacit-local --epsilon 1 -R participations=3 -R teaches=lifetime",
        "nothing here bounds what one person teaches in all their participations together",
    ),
    (
        "guarantee river-swim tacit-joint --epsilon 1 -R participations=any -R teaches=every",
        "participations may not be any number where every one is counted in full",
    ),
    (
        "guarantee river-swim psrl -R period=30x",
        "-R period = '30x', but it must be seconds, or text like",
    ),
    (
        "guarantee river-swim psrl -R period=10h -R apart=1d",
        "apart is 1 day and a period 10 hours, so nobody could take part twice in one",
    ),
    ("run river-swim psrl -R peopel=3", "-R has no 'peopel'; did you mean 'people'?"),
    ("guarantee river-swim psrl -R people=3", "-R has no 'people'"),
    ("run play:FrozenLake-v1 psrl -E horizn=3", "-E has no 'horizn'; did you mean 'horizon'?"),
    ("run river-swim psrl -E horizon=3", "horizon: only of what is played"),
    ("run river-swim psrl -R teaches=first -R teaches=every", "-R teaches is given twice"),
    ("guarantee play:FrozenLake-v1 psrl", "can only be played"),
    ("audit random-mdp psrl -R participations=0", "participations = 0, but it must be a whole"),
    ("audit random-mdp psrl -R participations=often", "-R participations = 'often'"),
    ("audit random-mdp psrl -R teaches=last", "teaches = 'last', but it must be one of"),
    ("audit random-mdp psrl -R participations=3 -R period=soon", "period = 'soon', but it must be"),
    ("audit random-mdp psrl --confidence 2", "confidence = 2, but it must be a finite number"),
    ("audit random-mdp psrl --seconds 0", "seconds = 0, but it must be a finite number > 0"),
    ("audit random-mdp uniform", "uniform collects nothing, so there is nothing to audit"),
    ("guarantee river-swim psrl --plot c.txt", "it must end in .png, .pdf, .svg"),
    ("guarantee lq-scalar psrl", "psrl learns tabular problems, but this problem is lq"),
    ("guarantee river-swim ofu-rl", "ofu-rl learns control problems and must be told start"),
    (
        "guarantee cart-pole tacit-search -A model=shuffle --epsilon 1 --episodes 5",
        "5 people are fewer than the 2 d = 8 directions of a batch",
    ),
    ("guarantee gym:FrozenLake-v1 psrl", "the steps of an episode: -P horizon=100"),
    ("guarantee gym:CartPole-v1 policy-search", "it is the problem cart-pole, for agents that"),
    ("offline nodir --policy policy.json", "there is no nodir: name a log, or the folder that"),
    ("offline log.csv --policy policy.json --out x", "with --policy nothing is learned or written"),
    ("offline log.csv", "tacit-offline is private and needs an epsilon"),
    ("run river-swim dp-apvi --epsilon 1", "dp-apvi learns from a log that is there already"),
    ("reproduce coach -O people=abc", "-O people = 'abc', but it must be a whole number"),
    ("reproduce coach -O people=100,0", "-O people = 0, but it must be a whole number >= 1"),
    ("reproduce coach -O epsilon=abc", "-O epsilon = 'abc', but it must be a number"),
    ("reproduce coach -O returns=0", "-O returns = 0, but it must be a whole number >= 1"),
    ("size river-swim tacit-joint --epsilon 1,abc", "--epsilon = 'abc', but it must be a number"),
    ("report nowhere", "nowhere"),
    ("sweep nowhere.toml", "nowhere.toml"),
    ("serve nowhere.toml", "nowhere.toml"),
]

RIVER = tacit.problem("river-swim")
PRIVATE = tacit.agent("tacit-joint", epsilon=1.0)
P, R = np.full((2, 2, 2), 0.5), np.zeros((2, 2))

CALLED: list[tuple[str, Callable[[], object], str]] = [
    ("swapped", lambda: tacit.simulate(PRIVATE, RIVER, 9), "swap the two"),
    ("swapped names", lambda: tacit.audit("psrl", "river-swim"), "swap the two"),
    ("no problem", lambda: tacit.simulate(None, "psrl", 9), "it must be a problem, such as"),
    ("a table", lambda: tacit.simulate(P, "psrl", 9), "of type ndarray, but it must be a problem"),
    ("a class", lambda: tacit.simulate(tacit.TabularMDP, "psrl", 9), "(call it: TabularMDP(...))"),
    ("no agent", lambda: tacit.guarantee(RIVER, 7, 9), "agent is 7 of type int, but it must be"),
    ("unknown problem", lambda: tacit.problem("river-swin"), "did you mean 'river-swim'?"),
    (
        "unknown agent",
        lambda: tacit.agent("tacit-locl", epsilon=1),
        "did you mean 'tacit-local' or",
    ),
    ("no epsilon", lambda: tacit.agent("ldp-obi"), "tacit.agent('ldp-obi', epsilon=1.0)"),
    ("text epsilon", lambda: tacit.agent("ldp-obi", epsilon="1"), "it must be a finite number > 0"),
    ("true epsilon", lambda: tacit.agent("ldp-obi", epsilon=True), "it must be a finite number"),
    ("negative epsilon", lambda: tacit.agent("ldp-obi", epsilon=-1.0), "epsilon = -1, but it must"),
    ("no such option", lambda: tacit.agent("psrl", alpha=1), "did you mean 'alpha0'?"),
    ("wrong word", lambda: tacit.agent("ldp-obi", epsilon=1, width="big"), "one of paper, "),
    ("zero users", lambda: tacit.simulate(RIVER, "psrl", 0), "episodes = 0, but it must be"),
    ("half a user", lambda: tacit.guarantee(RIVER, "psrl", 0.5), "episodes = 0.5, but it must be"),
    ("text users", lambda: tacit.simulate(RIVER, "psrl", "9"), "episodes = '9', but it must be"),
    ("no runs", lambda: tacit.simulate(RIVER, "psrl", 9, 0), "runs = 0, but it must be"),
    (
        "unknown fact",
        lambda: tacit.Experiment(problem=RIVER, agent="psrl", episodes=9, reveal=["x"]).run(),
        "no fact 'x' to",
    ),
    (
        "useless fact",
        lambda: tacit.guarantee(RIVER, "psrl", 9, reveal=["initial"]),
        "leave it unrevealed",
    ),
    (
        "negative participations",
        lambda: tacit.guarantee(RIVER, PRIVATE, 9, participation=-1),
        "participations = -1, but it must be a whole number >= 1",
    ),
    ("rows off", lambda: tacit.TabularMDP(P * 0.9, R, 3), "must sum to 1; divide it by its sum"),
    ("rewards off", lambda: tacit.TabularMDP(P, R + 2, 3), "must lie in [0, 1]; rescale them"),
    ("shape off", lambda: tacit.TabularMDP(P[0], R, 3), "it must be [states, actions, states]"),
    ("horizon off", lambda: tacit.TabularMDP(P, R, 0), "horizon = 0, but it must be a whole"),
    ("epsilon below 0", lambda: guaranteed().delta(-1), "epsilon = -1, but it must be a finite"),
    ("delta above 1", lambda: guaranteed().epsilon_at(2), "delta = 2, but it must be a finite"),
    ("no times", lambda: guaranteed().compose(0), "times = 0, but it must be a whole number >= 1"),
    ("too few points", lambda: guaranteed().curve(1), "points = 1, but it must be a whole number"),
    ("over at once", lambda: tacit.TabularMDP(P, R, 3, 1, terminal=[1]), "begin in a terminal"),
    ("returns", lambda: tacit.TabularMDP(P, R + 1, 3, returns=(0, 2)), "best policy of this table"),
    ("low returns", lambda: tacit.TabularMDP(P, R, 3, returns=(1, 2)), "returns 0 on average"),
    ("text returns", lambda: tacit.TabularMDP(P, R, 3, returns="0,1"), "the least and the largest"),
    ("no names", lambda: tacit.TabularMDP(P, R, 3, terminal=["done"]), "numbers from 0 to 1, or"),
    ("labels", lambda: tacit.TabularMDP(P, R, 3, labels=["a", "b"]), "it must be names by kind"),
    (
        "form",
        lambda: tacit.simulate(
            tacit.environment("gym:CartPole-v1", scoring="identity"), "policy-search", 9
        ),
        "scoring is 'identity', but it must be what tacit.policies.parametric.scoring_of(...)",
    ),
    ("few trials", lambda: tacit.audit(RIVER, PRIVATE, trials=10), "trials = 10, but it must be"),
]


def guaranteed() -> tacit.Guarantee:
    return tacit.guarantee(RIVER, PRIVATE, 9)


def test_there_are_a_hundred() -> None:
    assert len(TYPED) + len(CALLED) >= 100


@pytest.mark.parametrize(("words", "message"), TYPED, ids=[words for words, _ in TYPED])
def test_mistakes_get_one_line_and_status_2(call, words: str, message: str) -> None:
    done = call(*words.split())
    assert done.status == 2 and done.out == ""
    assert message in done.err and done.err.startswith("tacit: ") and done.err.count("\n") == 1


@pytest.mark.parametrize(("what", "ask", "message"), CALLED, ids=[what for what, _, _ in CALLED])
def test_mistakes_in_python_are_explained(what: str, ask: Callable, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        ask()
