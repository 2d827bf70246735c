"""Deployment files: what runs, and what is refused with a sentence."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditing.small import fitting, made, private_agents
from service.conftest import JOINT, LOCAL
from tacit.errors import InvalidInput
from tacit.task.task import LONGEST
from tacit.util.durations import DAY, HOUR, in_words, seconds
from tacit.wire import documents
from tacit_service.collector import Collector
from tacit_service.config.deployment import Deployment
from tacit_service.config.sections import iso, moment
from tacit_service.config.serving import served_model

GOOD = LOCAL.format(users=400, batch=100, keep="false", more="")
CURATED = JOINT.format(users=400, batch=100, keep="false", more="")


def parse(text: str, folder: Path = Path("/nowhere")) -> Deployment:
    return Deployment.parse(text, folder / "file.toml")


def test_the_example_runs_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text(Deployment.example())
    deployment = Deployment.load(path)
    assert deployment.model == "local" and deployment.guarantee.unit == "user"
    assert deployment.settings.fleet["problem"] == "river-swim"
    with Collector.open(deployment) as collector:
        assert collector.policy().version == 0
        described = collector.describe()
    assert described["task_id"] == deployment.task_id and len(deployment.task_id) == 64
    assert described["labels"] == {"states": None, "actions": ["left", "right"]}
    assert (tmp_path / "example.db").exists()


def test_what_a_device_agrees_to_makes_the_id() -> None:
    one = parse(GOOD)
    assert one.task_id == parse(GOOD).task_id
    for old, new in (
        ('name = "test"', 'name = "best"'),
        ("epsilon = 4.0", "epsilon = 3.0"),
        ("users = 400", "users = 401"),
        ("horizon = 4", "horizon = 5"),
        ('"shared"', '"per-device"'),
    ):
        assert parse(GOOD.replace(old, new)).task_id != one.task_id, new
    assert parse(GOOD + "[server]\nport = 9\n").task_id == one.task_id


BEGUN_BEFORE = {
    "ldp-obi": "55b28035a3d2d1488eaf0971fc93f22d115ef2f5268a1b0d76348a58c29de061",
    "ldp-psrl": "0a868038645631fe8fae2fcbb0d2d6f1db86af3921d184b7e691e8a34758ace0",
    "private-linopt-vi": "2283888dc901a064c9659dbfac024a6f769fa565beab81a1b20727f1e99413fe",
    "pucb": "7ceea9cc7b798011dde6c44d0909d08dd93fe9750f80b4f93056d8178d068a85",
    "private-ucb-vi": "076e7f4479a65a7527324a7bea8300b4a8f7a54b169bc99760df0fe0832276ce",
    "dp-ucbvi": "00b24f45a0042e870f35c8d030f3530be3f3ba36877dcf5fc31155283f590726",
    "private-ucb-po": "b68aeee9865f8b438d4c7c243cfbc28966c2e988520173afb7e11b74b80dd76f",
}
"""Task ids by a tacit in which the calibration of a file that names none was "tight"."""


@pytest.mark.parametrize("name", BEGUN_BEFORE)
def test_a_task_goes_on_in_the_calibration_that_it_began_in(name: str) -> None:
    curated = CURATED.replace("first = 40\ngrowth = 1.5\n", "")
    text = GOOD if name.startswith("ldp") else curated
    text = re.sub('"tacit-(local|joint)"', f'"{name}"', text)
    begun = parse(text).as_recorded(BEGUN_BEFORE[name])
    assert begun.task_id == BEGUN_BEFORE[name]
    assert begun.agent.parameters()["calibration"] == "tight"
    open_ = f'name = "{name}"'
    assert parse(text.replace(open_, f'{open_}\ncalibration = "tight"')).task_id == begun.task_id
    assert begun.as_recorded(None) is begun


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("horizon", "horzion", r"\[task\] has no key 'horzion'; did you mean 'horizon'"),
        ("[population]", "[popluation]", r"unknown section \[popluation\]; did you mean"),
        ("users = 400", "", r"\[population\] needs the key 'users'"),
        ("users = 400", 'users = "many"', "users in .population. = 'many', but it must be a whole"),
        ("epsilon = 4.0", "", "tacit-local is private and needs an epsilon"),
        ("epsilon = 4.0", "epsilon = 4.0\nbatsh = 3", "no parameter 'batsh'; did you mean 'batch'"),
        ('"tacit-local"', '"tacit-lokal"', "unknown agent 'tacit-lokal'; did you mean"),
        ("states = 3", "states = ['a', 'a']", "each name once"),
        ("states = 3", "states = 3\nabsorbing_state = 3", "states are numbered from 0 to 2"),
        ("horizon = 4", "horizon = 4\nreward_range = [1, 0]", "first must be below the second"),
        ("horizon = 4", "horizon = 4\nfeatures = 'no.npy'", "need theta_norm"),
        (
            "horizon = 4",
            "horizon = 4\nterminal = 2",
            "terminal in .task. = 2, but it must",
        ),
        (
            "horizon = 4",
            "horizon = 4\nterminal = [3]",
            "terminal = 3, but it must be a",
        ),
        ("horizon = 4", "horizon = 4\nterminal = [0, 1, 2]", "every state is terminal"),
        ("horizon = 4", "horizon = 4\nreturns = [0.0, 5.0]", "the largest of returns = 5, but"),
        (
            "horizon = 4",
            "horizon = 4\nallowed = [[0], [0]]",
            "of 2 states, but there are 3",
        ),
        ("horizon = 4", "horizon = 4\nallowed = [[0], [], [0]]", "no action is allowed in state 1"),
        ("horizon = 4", "horizon = 4\nstart = [0.5, 0.5]", "initial has shape .2., but it must"),
        ("horizon = 4", "horizon = 4\nterminal = [2]\nstart = 2", "begin in a terminal state"),
        ("[population]", "[population]\nparticipations = 'lots'", '>= 1, or "any"'),
        (
            "horizon = 4",
            "horizon = 4\nterminal = [2]\nreward_range = [1.0, 5.0]",
            r"reward_range = .1, 5. in .task., but it must hold 0 where there are terminal states",
        ),
        ("[storage]", "[storage]\ndatabase = 'mysql://x'", "must be an SQLite file"),
        ("[storage]", "[window]\nopens = 2026-01-01T00:00:00\n[storage]", "time with an offset"),
        ('tokens = "shared"', 'tokens = "shared"\nparticipations = 2', "one participation"),
        ("minimum_batch = 100", "minimum_batch = 100\ncadence = 'soon'", "seconds, or text like"),
        ("[task]", "[task", "file.toml: "),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse(GOOD.replace(old, new, 1))


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ('name = "psrl"', "psrl cannot be served"),
        ('name = "shuffle-obi"\nepsilon = 1.0\ndelta = 1e-6', "cannot be served"),
        ('name = "tacit-linear"\nepsilon = 1.0', "cannot be served|learns"),
        ('name = "ldp-obi"\nepsilon = 1.0\ndelta = 1e-5\nrandomizer = "bounded"', "exact sampler"),
        (
            'name = "ldp-obi"\nepsilon = 1.0\ndelta = 1e-5\nrandomizer = "gaussian"\n'
            'calibration = "paper"',
            "does not keep the epsilon",
        ),
        ('name = "ldp-ucrl-vtr"\nepsilon = 1.0', "must be told reward"),
        ('name = "optimal"', "must be told|cannot be served"),
    ],
)
def test_agents_that_cannot_be_served(agent: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse(GOOD.replace('name = "tacit-local"\nepsilon = 4.0', agent))


def test_what_is_declared_about_the_table_is_part_of_the_task() -> None:
    plain = parse(GOOD)
    facts = """horizon = 4
terminal = ["gone"]
allowed = [["rest"], ["rest", "walk"], []]
start = "calm"
returns = [-2.0, 4.0]
reward_range = [-1.0, 3.0]"""
    named = GOOD.replace("states = 3", 'states = ["calm", "tense", "gone"]')
    named = named.replace("actions = 2", 'actions = ["rest", "walk"]')
    made = parse(named.replace("horizon = 4", facts, 1))
    task = made.task
    assert made.task_id != plain.task_id and plain.task.pairs.every
    assert task.pairs.number.tolist() == [[0, -1], [1, 2], [-1, -1]]
    assert task.end_reward == 0.25 and task.known["initial"].tolist() == [1.0, 0.0, 0.0]
    assert task.returns == (0.5, 2.0) and plain.task.returns == (0.0, 4.0)
    assert task.labels["actions"] == ("rest", "walk")
    assert documents.task_from_json(made.terms["task"]) == task


def test_a_missing_file_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="--init"):
        Deployment.load(tmp_path / "none.toml")


def test_the_minimum_batch_is_part_of_a_calibrated_schedule() -> None:
    small = parse(CURATED.replace("minimum_batch = 100", "minimum_batch = 20"))
    large = parse(CURATED.replace("minimum_batch = 100", "minimum_batch = 120"))
    assert small.agent.parameters()["least"] == 20
    assert large.bound.schedule.times == (0, 120, 240, 360, 400)
    assert [large.bound.schedule(served) for served in (0, 120, 360)] == [120, 120, 40]
    assert large.bound.privatizer.batch == 120
    assert large.bound.privatizer.strategy.length == 4
    assert large.bound.privatizer.noise_std != small.bound.privatizer.noise_std
    with pytest.raises(InvalidInput, match="least = 10 in .agent. makes batches smaller"):
        parse(CURATED.replace("epsilon = 4.0", "epsilon = 4.0\nleast = 10"))


def test_local_batches_are_never_smaller_than_the_minimum() -> None:
    deployment = parse(GOOD.replace('"tacit-local"', '"ldp-obi"'))
    assert [deployment.bound.schedule(served) for served in (0, 1, 399)] == [100, 100, 100]


def test_features_from_a_file(tmp_path: Path) -> None:
    phi = np.random.default_rng(1).dirichlet(np.ones(3), size=(3, 2, 2)).swapaxes(2, 3)
    np.save(tmp_path / "phi.npy", phi)
    text = CURATED.replace("horizon = 4", 'horizon = 4\nfeatures = "phi.npy"\ntheta_norm = 1.0')
    deployment = parse(text, tmp_path)
    assert deployment.task.revealed == ("features", "theta_norm")
    np.save(tmp_path / "phi.npy", phi[:2])
    with pytest.raises(InvalidInput, match="of shape"):
        parse(text, tmp_path)
    np.save(tmp_path / "phi.npy", np.full((3, 2, 3, 2), 1 / 3))
    with pytest.raises(InvalidInput, match="cannot learn from these features"):
        parse(text, tmp_path)


GOLDEN_ID = "58c153c5438cd5b5b9c504acfd381dbf99bdfcc48ad59bcb50b83a3a3c5aafa3"
TIMED = GOOD.replace("horizon = 4", 'horizon = 4\nduration = "7d"').replace(
    "accepted_versions = 2", ""
)


def test_a_duration_decides_how_long_reports_are_taken(tmp_path: Path) -> None:
    one, none = parse(TIMED), parse(GOOD)
    assert (one.task.duration, one.delay, one.grace) == (7 * DAY, 6 * HOUR, 7 * DAY)
    assert one.accepted_versions is None and one.task_id != none.task_id
    assert "until 14 days 6 hours after it was replaced" in one.taking
    assert "for 7 days from the beginning" in one.sending and "up to 6 hours" in one.sending
    assert (none.task.duration, none.delay, none.grace, none.accepted_versions) == (0, 0, 0, 2)
    assert "can tell who stopped early" in none.sending
    assert none.taking == (
        "Reports may name the newest policy and the one before it, however long an episode takes"
    )
    old = none.as_recorded(GOLDEN_ID)
    assert (old.task_id, old.form) == (GOLDEN_ID, 1), "tasks that began earlier keep their ids"
    short = parse(TIMED.replace('"7d"', '"10m"'))
    assert (short.delay, short.grace) == (60.0, DAY)
    text = TIMED.replace("minimum_batch", 'delay = "3d"\ngrace = 0\nminimum_batch')
    own = parse(text, tmp_path)
    assert (own.delay, own.grace) == (3 * DAY, 0.0) and own.task_id == one.task_id
    with Collector.open(own) as collector:
        said = collector.describe()
    assert (said["task"]["duration"], said["delay"], said["grace"]) == (7 * DAY, 3 * DAY, 0.0)
    assert said["accepted_versions"] is None


@given(
    st.floats(0.0, 1e8, allow_subnormal=False),
    st.sampled_from([("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)]),
    st.sampled_from(["", " "]),
)
@settings(max_examples=100, deadline=None)
def test_durations_in_toml(value: float, unit: tuple[str, float], space: str) -> None:
    """Text with a unit, or seconds; and in words again without loss."""
    written = f"{value:.6f}"
    text = TIMED.replace('"7d"', f'"{written}{space}{unit[0]}"')
    seconds = float(written) * unit[1]
    if seconds > LONGEST:
        with pytest.raises(InvalidInput, match="duration = .* <= 1e[+]09"):
            parse(text)
        return
    if seconds == 0.0:
        assert parse(text).task.duration == 0.0
        return
    deployment = parse(text)
    assert deployment.task.duration == seconds
    assert parse(TIMED.replace('"7d"', repr(seconds))).task_id == deployment.task_id
    assert 0.0 < deployment.delay <= min(seconds / 10, 6 * HOUR)
    assert deployment.grace >= max(seconds, DAY)


@given(st.integers(0, 10**9))
@settings(max_examples=100, deadline=None)
def test_lengths_of_time_in_words_are_exact(seconds: int) -> None:
    sizes = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}
    words = in_words(float(seconds)).replace(",", "").split()
    pairs = zip(words[::2], words[1::2], strict=True)
    assert sum(float(count) * sizes[unit.rstrip("s")] for count, unit in pairs) == seconds


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"7d"', '"a week"', "seconds, or text like"),
        ('"7d"', "-1", "duration in .task. = -1"),
        ('"7d"', "true", "duration in .task. = True"),
        ('"7d"', "nan", "duration in .task. = nan"),
        ('"7d"', f'"{"9" * 400}d"', "duration in .task. = inf"),
        ("[storage]", "", "accepted_versions in .updates. is the rule of tasks without"),
        ("minimum_batch", 'delay = "8d"\nminimum_batch', "must not be above duration"),
    ],
)
def test_bad_durations_are_said(old: str, new: str, message: str) -> None:
    text = TIMED if old != "[storage]" else TIMED.replace(old, "accepted_versions = 3\n[storage]")
    with pytest.raises(InvalidInput, match=message):
        parse(text.replace(old, new, 1) if old != "[storage]" else text)


@pytest.mark.parametrize("key", ["delay", "grace"])
def test_delay_and_grace_need_a_duration(key: str) -> None:
    with pytest.raises(InvalidInput, match=f"{key} in .updates. goes with duration"):
        parse(GOOD.replace("minimum_batch", f'{key} = "1h"\nminimum_batch'))


def test_units_and_times() -> None:
    assert seconds("2h", "x") == 7200.0 and seconds(3, "x") == 3.0
    assert iso(moment("2026-05-01T08:00:00Z", "x")) == "2026-05-01T08:00:00Z"
    assert parse(GOOD).guarantee.unit == "participation"
    assert "any single participation" in parse(GOOD).guarantee.statement()
    user = parse(GOOD.replace('"shared"', '"per-device"')).guarantee
    assert user.unit == "user" and "any user's whole trajectory" in user.statement()


def test_the_environment_overrides_every_key_with_the_same_checks(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://tacit:hush@db/coach\n")
    given = {
        "TACIT_SERVER_PORT": "9000",
        "TACIT_SERVER_HOST": "0.0.0.0",
        "TACIT_UPDATES_CADENCE": "5m",
        "TACIT_AGENT_EPSILON": "1.5",
        "TACIT_TASK_REWARD_RANGE": "[-1.0, 1.0]",
        "TACIT_STORAGE_DATABASE_FILE": str(secret),
        "TACIT_STORAGE_KEY_FILE": "elsewhere.key",
        "TACIT_CACHE_DIR": "/not/a/setting",
    }
    changed = Deployment.parse(GOOD, tmp_path / "file.toml", given)
    assert (changed.settings.server.host, changed.settings.server.port) == ("0.0.0.0", 9000)
    assert changed.settings.updates.cadence == 300.0
    assert changed.guarantee.epsilon == pytest.approx(1.5)
    assert changed.settings.task.reward_range == (-1.0, 1.0)
    assert changed.settings.storage.key_file == "elsewhere.key"
    assert "hush@db" in changed.database and "hush" not in repr(changed.settings)
    assert changed.task_id != parse(GOOD).task_id


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TACIT_SERVER_PORT", "0", "file.toml with TACIT_SERVER_PORT: port in [server]"),
        ("TACIT_SERVER_PROT", "1", "no key 'prot'"),
        ("TACIT_STORAGE_DATABASE_FILE", "/nowhere/url", "cannot be read"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(InvalidInput) as error:
        Deployment.parse(GOOD, "file.toml", {name: value})
    assert said in str(error.value)


def test_whoever_that_refusal_names_can_be_served() -> None:
    """A new agent that can be is served without being named there."""
    served, refusals = set(), set()
    for name in private_agents():
        for bound in fitting(name).values():
            try:
                served_model(bound, made(name))
                served.add(name)
            except InvalidInput as refusal:
                refusals.add(str(refusal).partition("the service takes agents")[2])
    (named,) = refusals - {""}
    names = set(", ".join(re.findall(r"\((.*?)\)", named)).split(", "))
    assert len(names) > 10 and names <= served
