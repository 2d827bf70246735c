"""Files whose numbers are special, down to their bits: nobody moves what is summed by too much."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from contracts import hostile
from contracts.statistic import Case, LogStatisticContract
from tacit.errors import InvalidInput
from tacit.logs.encoding import _not_below
from tacit.logs.mapping import make_mapping
from tacit.logs.reading import open_log
from tacit.logs.rows import in_memory
from tacit.policies.tabular import uniform_policy
from tacit.publication import Publication
from tacit.statistics.log_sums import LoggedOutcomes, LoggedStages, LoggedVisits, WeightedReturns
from tacit.trajectory import Log

STATES, ACTIONS, HORIZON, PEOPLE = 4, 2, 3, 300
TEXTS = ["nan", "NaN", "inf", "-inf", "Infinity", "0", "-0.0", "5e-324", "-5e-324", "1e-400"]
TEXTS += ["1e400", "-1e400", "1.7976931348623157e308", "0.9999999999999999", "1.0000000000000002"]
TEXTS += ["1", "0.5", "1e-5", "1e-46", "2", "-1", "", "NA", "null", "true", "0x1p-3", "1_0", "zero"]
NAMES = ("person", "episode", "step", "reward", "propensity")


def mapped() -> Any:
    return make_mapping(
        {
            "data": {"name": "hostile", "people": PEOPLE},
            "columns": {name: name for name in NAMES} | {"ends": "ends"},
            "state": [{"column": "state", "size": STATES}],
            "action": {"column": "action", "size": ACTIONS},
            "task": {"horizon": HORIZON},
            "reward": {"range": [-0.5, 1.0], "most": 1.5},
        }
    )


def written(path: Path, kind: Any) -> Path:
    """A file with rows of many people; of texts, or of numbers of this type."""
    rng, lives = np.random.default_rng(7), []
    for person in range(PEOPLE):
        rows = HORIZON * int(rng.integers(1, 3))
        plain = {
            "episode": np.arange(rows) // HORIZON,
            "step": np.arange(rows) % HORIZON,
            "state": rng.integers(STATES, size=rows),
            "action": rng.integers(ACTIONS, size=rows),
            "ends": np.zeros(rows),
        }
        sent: dict[str, Any] = {"person": np.full(rows, person)}
        for name in (*plain, "reward", "propensity"):
            odd = rng.random() < (0.15 if name in plain else 1.0)
            if kind is str:
                among = rng.choice(TEXTS, size=1 if rng.random() < 0.4 else 6)
                usual = [format(x, "g") for x in plain[name]] if name in plain else []
                sent[name] = rng.choice(among, size=rows) if odd else np.array(usual)
            elif odd:
                sent[name] = hostile.column(rng, rows, kind, [0.0, 0.5, 1.0, 1e-5])
            else:
                sent[name] = plain[name].astype(kind)
        lives.append(sent)
    together = {name: np.concatenate([one[name] for one in lives]) for name in lives[0]}
    table = pa.table({name: pa.array(column) for name, column in together.items()})
    if kind is str:
        pyarrow.csv.write_csv(table, path.with_suffix(".csv"))
        return path.with_suffix(".csv")
    pyarrow.parquet.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def each_person(log: Log) -> list[Log]:
    """Everybody's rows as a log of their own."""
    ends = zip(log.begin[:-1].tolist(), log.begin[1:].tolist(), strict=True)
    return [
        Log(np.array([0, last - first]), *(column[first:last] for column in log[1:]))
        for first, last in ends
    ]


@pytest.mark.parametrize("kind", [str, np.float16, np.float32, np.float64])
def test_nobody_in_a_file_moves_the_sums_by_more_than_declared(kind: Any, tmp_path: Path) -> None:
    meant = mapped()
    people = each_person(open_log(written(tmp_path / "log", kind), meant).read().log)
    assert len(people) == PEOPLE
    states = meant.task.sizes["states"]
    policy = np.random.default_rng(0).random((HORIZON, states, ACTIONS))
    policy[1, :, 0], policy[:, 0, :] = 0.0, [1.0, 5e-324]
    statistics = [
        LoggedVisits(meant.task, 3, meant.max_return),
        LoggedStages(meant.task, meant.max_return),
        LoggedOutcomes(meant.task, 2, meant.max_return),
        WeightedReturns(meant.task, policy, 3.0, meant.max_return),
    ]
    nobody, contract = Publication(0, uniform_policy(1, 1, 1)), LogStatisticContract()
    for statistic in statistics:
        case = Case(statistic, nobody, lambda rng: None)
        rows = np.array([contract.contribution(case, one, nobody) for one in people])
        assert contract.check(case, rows) > 0.4


def test_chances_are_never_read_as_smaller_ones() -> None:
    """A chance too small would be a weight too large: also where floats are coarse."""
    texts = [
        "1e-46",
        "2e-45",
        "1e-40",
        "0.1",
        "0.3",
        "0.9999999999999999",
        "1",
        "1.0000000000000002",
    ]
    numbers = np.array([*map(float, texts)])
    read = _not_below(numbers).astype(np.float64)
    assert (read[:-1] >= numbers[:-1]).all() and (read <= 1.0).all()
    assert np.allclose(read, numbers, rtol=2e-7, atol=2e-45)
    assert (_not_below(np.array([0.0, 2.0])) == [0.0, 2.0]).all(), "not recorded, and none"


@pytest.mark.parametrize("kind", [np.float16, ">f8", np.float32, np.int8, bool])
def test_columns_in_memory_may_be_of_any_type_that_numbers_have(kind: Any) -> None:
    """And then say the same."""
    some = np.array([1.0, 0.0, 1.0])
    log = Log(np.array([0, 3]), *[np.arange(3)] * 4, some, np.full(3, -1), some)
    usual = in_memory(log, 5)
    sent = in_memory(log._replace(reward=some.astype(kind), chance=some.astype(kind)), 5)
    for one, two in zip(usual, sent, strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize(
    "wrong",
    [
        {"reward": np.array([1.0, "1", None], dtype=object)},
        {"reward": np.ones(3, dtype=np.complex128)},
        {"chance": np.ones(3, dtype=np.longdouble)},
        {"chance": np.ones((3, 1))},
        {"state": np.array([0.0, 1.0, np.nan])},
        {"step": np.array(["0", "1", "2"])},
    ],
    ids=str,
)
def test_columns_in_memory_are_refused_for_their_types_alone(wrong: dict[str, Any]) -> None:
    whole, real = np.arange(3), np.ones(3)
    log = Log(np.array([0, 3]), whole, whole, whole, whole, real, whole, real)
    (name,) = wrong
    with pytest.raises(InvalidInput, match=f"column '{name}' of a log in memory must be one row"):
        in_memory(log._replace(**wrong), 5)
    with pytest.raises(InvalidInput, match="person by person"):
        in_memory(log._replace(chance=np.ones(2)), 5)


def test_columns_in_memory_whose_type_follows_from_what_is_in_them_are_refused() -> None:
    """The same for everybody: lists of whole numbers, one of which may be missing."""
    whole, real, said = np.arange(3), np.ones(3), set()
    log = Log(np.array([0, 3]), whole, whole, whole, whole, real, whole, real)
    for state in ([0, 1, 2], [0, 1, None], [0, 1, 2**64], [0, 1, 0.5], ["0", 1, 2]):
        with pytest.raises(InvalidInput, match="must be a numpy array, not a list") as refused:
            in_memory(log._replace(state=state), 5)
        said.add(str(refused.value))
    assert len(said) == 1
