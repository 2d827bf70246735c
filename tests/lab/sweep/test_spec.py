"""What a sweep file may say, and what is said about mistakes in it."""

from pathlib import Path

import pytest

from tacit.errors import InvalidInput
from tacit_lab.sweep.spec import CHOOSING_SEEDS_FROM, parse, plan, read
from tacit_lab.sweep.task import SweepTask

ROOT = Path(__file__).resolve().parents[3]
BASE = 'episodes = 10\nproblems = "random-mdp"\n'


def labels(text: str) -> list[str]:
    return [item.configuration.label for item in plan(parse(text, Path("study.toml")))]


def test_lists_are_crossed_and_privacy_goes_to_those_who_take_it() -> None:
    text = """
    episodes = [1e1, 20]
    epsilon = [1, 2.5]
    delta = 1e-5
    problems = [{name = "random-mdp", seed = [1, 2]}]
    agents = ["uniform", {name = "ldp-obi", randomizer = ["laplace", "gaussian"]}]
    """
    found = labels(text)
    assert len(found) == len(set(found)) == 2 * 2 * (1 + 2 * 2)
    assert "uniform on random-mdp (seed=1), 10 episodes" in found
    assert "ldp-obi (epsilon=1 randomizer=laplace) on random-mdp (seed=2), 20 episodes" in found
    gaussian = "ldp-obi (epsilon=2.5 delta=1e-05 randomizer=gaussian)"
    assert f"{gaussian} on random-mdp (seed=1), 10 episodes" in found


def test_how_people_come_back_is_an_axis_and_once_appears_once() -> None:
    text = f"""{BASE}
    agents = "psrl"
    participations = [1, 5, "any"]
    teaches = ["first", "lifetime"]
    people = 4
    period = "30d"
    """
    assert len(labels(text)) == 6  # once in every period is a rule as well
    found = labels(text.replace('period = "30d"', ""))
    assert len(found) == 5 and found[0] == "psrl on random-mdp, 10 episodes"
    assert found[1] == ("psrl (participations=5 teaches=first people=4) on random-mdp, 10 episodes")
    assert found[4].startswith("psrl (participations=any teaches=lifetime people=4)")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("people = 4", "people is about people who come back: say how often"),
        ('attendance = "rounds"', "attendance is about people who come back"),
        ("participations = 0", "participations = 0, but it must be a whole number"),
        ('participations = 3\nattendance = "x"', "attendance = 'x', but it must be one of rounds"),
        ('participations = "any"\nteaches = "every"', "no noise is enough for that"),
        ("participations = 3\npeople = 0", "people = 0, but it must be a whole number"),
    ],
)
def test_mistakes_about_people_who_come_back(more: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        labels(f'{BASE}agents = "psrl"\n{more}\n')


def test_one_and_one_point_zero_are_the_same_task() -> None:
    digests = set()
    for epsilon in ("1", "1.0"):
        text = f'{BASE}epsilon = {epsilon}\nagents = "ldp-obi"'
        (item,) = plan(parse(text, Path("study.toml")))
        digests.add(SweepTask(item.configuration).digest)
    assert len(digests) == 1


def test_a_task_is_named_by_all_that_determines_it() -> None:
    base = 'episodes = 10\nproblems = "random-mdp"\nagents = "psrl"\n'
    others = (
        base.replace("10", "11"),
        base.replace('"random-mdp"', '{name = "random-mdp", seed = 3}'),
        base.replace('"psrl"', '{name = "psrl", alpha0 = 2}'),
        base.replace('"psrl"', '"uniform"'),
        base + "checkpoints = 5\n",
        base + 'reveal = "reward"\n',
        base + "participations = 5\n",
        base + 'participations = 5\nteaches = "first"\n',
        base + "participations = 5\npeople = 4\n",
        base + 'participations = 5\nattendance = "bursts"\n',
        base + 'participations = 5\nperiod = "3d"\n',
        base + 'participations = 5\napart = "3h"\n',
    )
    items = [plan(parse(text, Path("study.toml")))[0] for text in (base, *others)]
    digests = {SweepTask(item.configuration.at(seed)).digest for item in items for seed in (0, 1)}
    assert len(digests) == 2 * (1 + len(others))


def test_cases_are_crossed_each_on_its_own_and_meet_only_once() -> None:
    text = """
    seeds = 2
    episodes = 10
    agents = ["uniform"]
    [[cases]]
    problems = "random-mdp"
    [[cases]]
    problems = ["random-mdp", "river-swim"]
    episodes = [10, 20]
    seeds = [1, 7]
    """
    planned = plan(parse(text, Path("study.toml")))
    assert [item.seeds for item in planned] == [(0, 1, 7), (1, 7), (1, 7), (1, 7)]


def test_a_choice_has_seeds_of_its_own() -> None:
    text = f"""{BASE}
    seeds = 3
    agents = ["ucb-vi", {{name = "ucb-vi", bonus_scale = 1}}, "psrl"]
    [choose]
    parameter = "bonus_scale"
    candidates = [0.1, 1]
    seeds = 2
    """
    spec = parse(text, Path("study.toml"))
    assert spec.choose is not None
    undecided, *others = plan(spec)
    assert [item.candidates for item in others] == [(), ()]
    seeds = {task.spec.seed for task in undecided.choosing()}
    assert seeds == {CHOOSING_SEEDS_FROM, CHOOSING_SEEDS_FROM + 1}


CHOOSE = '[choose]\nparameter = "{}"\ncandidates = [1, 2]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("episodes = ", "is not valid TOML"),
        ('agents = "psrl"\nepisodes = 1', "problems is missing"),
        (BASE + 'agents = "psrl"\nepsilons = 1', "did you mean 'epsilon'"),
        (BASE + 'agents = "psrll"', "did you mean 'psrl'"),
        (BASE + 'agents = {name = "psrl", alpha = 1}', "has no parameter 'alpha'"),
        (BASE + 'agents = {name = "psrl", epsilon = 1}', "adds no noise and takes no epsilon"),
        (BASE + "agents = 3", "must be a name, or a table with a name"),
        (BASE + "agents = []", "empty list runs nothing"),
        (BASE + 'agents = "ldp-obi"', "needs an epsilon"),
        (BASE + 'agents = "ldp-obi"\nepsilon = 0', "epsilon = 0, but"),
        (BASE + 'agents = "ldp-obi"\nepsilon = 1\ndelta = 2', "delta = 2, but"),
        (
            BASE + 'agents = "ldp-obi"\nepsilon = 1\ncalibration = "loose"',
            "must be one of corrected",
        ),
        (BASE + 'agents = "psrl"\nseeds = 0', "seeds = 0, but"),
        (BASE + 'agents = "psrl"\nseeds = [1, 1]', "lists a seed twice"),
        (BASE + 'agents = "psrl"\nmodules = "not_there"', "cannot import the module 'not_there'"),
        (BASE + 'agents = "psrl"\ncases = 3', "must be a list of tables"),
        (BASE + 'agents = "psrl"\n[choose]\nseeds = 1', "needs parameter"),
        (BASE + 'agents = "psrl"\n' + CHOOSE.format("bonus_scale"), "finds nothing to choose"),
        (BASE + 'agents = "ucb-vi"\n' + CHOOSE.format("epsilon"), "privacy is asked for"),
        (
            BASE + 'agents = "ucb-vi"\n' + CHOOSE.format("bonus_scale") + "seeds = [1, 2]",
            "share 1, but what is chosen on a seed must not be reported on it",
        ),
    ],
)
def test_mistakes_are_named(text: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words.replace("[", r"\[")):
        plan(parse(text, Path("study.toml")))


def test_the_shipped_specs_can_be_planned() -> None:
    example = plan(read(ROOT / "src" / "tacit_lab" / "sweep" / "example.toml"))
    assert {item.configuration.agent.name for item in example} >= {"psrl", "tacit-local"}
    assert len(plan(read(ROOT / "examples" / "price_of_privacy.toml"))) >= 10
