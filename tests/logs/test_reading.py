"""Files become rows, and rows are cut by rule, whatever they hold and however they lie."""

import dataclasses
import sys
from datetime import datetime
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from logs.worlds import chain, mapping, uniform, write_log
from tacit.agents.offline import TacitOffline
from tacit.errors import InvalidInput
from tacit.logs import reading
from tacit.logs.mapping import LogMapping, make_mapping
from tacit.logs.offline import ASSUMES, EPISODES, offline
from tacit.logs.prior import LogPrior
from tacit.logs.reading import open_log
from tacit.logs.screen import MARK, ExactNumbers
from tacit.logs.simulated import simulate_log
from tacit.statistics.log_sums import LoggedVisits
from tacit_lab.report.log_page import render_page

RAW = {
    "data": {"name": "raw"},
    "columns": {"person": "who", "episode": "stay", "step": "day", "reward": "score"},
    "state": [
        {"column": "mood", "values": ["calm", "tense"], "other": "unknown"},
        {"column": "age", "bins": [30, 60]},
    ],
    "action": {"column": "did", "values": ["rest", "walk"]},
    "reward": {"range": [0, 10], "missing": 5},
    "task": {"horizon": 3, "first_step": 1},
}


def raw(**changes):
    data = {name: dict(part) if isinstance(part, dict) else part for name, part in RAW.items()}
    for table, keys in changes.items():
        data[table] = keys if isinstance(keys, list) else {**data.get(table, {}), **keys}
    return make_mapping(data)


def rows(tmp_path, table, mapped, ending="parquet"):
    path = tmp_path / f"log.{ending}"
    made = pa.table(table)
    if ending == "csv":
        pyarrow.csv.write_csv(made, path)
    else:
        pyarrow.parquet.write_table(made, path)
    return open_log(path, mapped).read().log


def table(**columns):
    n = len(next(iter(columns.values())))
    usual = {"who": ["a"] * n, "stay": [1] * n, "day": list(range(1, n + 1)), "score": [0.0] * n}
    usual |= {"mood": ["calm"] * n, "age": [20.0] * n, "did": ["rest"] * n}
    return usual | columns


def kept(log):
    last = log.begin[-1]
    return [column[:last].tolist() for column in (log.step, log.state, log.action, log.after)]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_columns_become_cells_and_steps(tmp_path, ending) -> None:
    found = rows(
        tmp_path,
        table(
            mood=["calm", "odd", "tense", None],
            age=[20.0, 30.0, 59.9, 60.0],
            did=["rest", "walk", "rest", None],
            score=[0.0, 20.0, None, None],
        ),
        raw(),
        ending,
    )
    assert kept(found) == [[0, 1, 2], [0, 7, 4], [0, 1, 0], [7, 4, 8]]
    assert found.reward[:3].tolist() == [0.0, 1.0, 0.5]
    assert found.begin.tolist() == [0, 3] and found.opens[:3].tolist() == [1, 0, 0]


def test_duplicates_gaps_and_what_lies_outside_are_cut(tmp_path) -> None:
    found = rows(
        tmp_path,
        table(
            day=[2, 1, 1, 0, 4, 9],
            mood=["calm", "tense", "calm", "calm", "calm", "calm"],
            did=["walk", "rest", "walk", "rest", "rest", "rest"],
        ),
        raw(),
    )
    # day 1: the first of two rows; day 0 and 9 outside; day 4 is where day 3 would have led
    assert kept(found) == [[0, 1], [3, 0], [0, 1], [0, -1]]


def test_a_row_of_an_unknown_state_or_person_is_left_out(tmp_path) -> None:
    ages = [20.0, None, 20.0]
    found = rows(tmp_path, table(age=ages), raw())
    assert kept(found) == [[0, 2], [0, 0], [0, 0], [-1, -1]]
    nobody = rows(tmp_path, table(who=["a", None, "b"], day=[1, 1, 1]), raw())
    assert nobody.people == 2


def test_an_unknown_action_teaches_nothing_but_where_the_step_before_led(tmp_path) -> None:
    moods = ["calm", "tense", "calm"]
    found = rows(tmp_path, table(did=["rest", "fly", "walk"], mood=moods), raw())
    assert kept(found) == [[0, 2], [0, 0], [0, 1], [3, -1]]
    other = rows(tmp_path, table(did=["rest", "fly", "walk"]), raw(action={"other": "walk"}))
    assert other.action[:3].tolist() == [0, 1, 1]


def test_episodes_end_where_the_log_says_so(tmp_path) -> None:
    columns = {**RAW["columns"], "ends": "quit"}
    for quits in ([False, True, False], ["no", "Yes", "no"], [0, 1, None]):
        found = rows(tmp_path, table(quit=quits, did=["rest"] * 3), raw(columns=columns))
        assert kept(found) == [[0, 1], [0, 0], [0, 0], [0, 9]]


def test_steps_may_be_dates_or_only_ordered(tmp_path) -> None:
    days = ["2026-03-01", "2026-02-27", "2026-03-04"]
    acts = ["walk", "rest", "walk"]
    found = rows(tmp_path, table(day=days, did=acts), raw(task={"steps": "dated"}), "csv")
    assert found.step[:3].tolist() == [0, 1, 2] and found.action[:3].tolist() == [0, 1, 1]
    ordered = rows(tmp_path, table(day=[5, 2, 70], did=acts), raw(task={"steps": "ordered"}))
    assert ordered.step[:3].tolist() == [0, 1, 2] and ordered.action[:3].tolist() == [0, 1, 1]


@pytest.mark.parametrize("steps", ["ordered", "dated"])
def test_a_step_whose_state_is_not_known_is_a_step_all_the_same(tmp_path, steps) -> None:
    days = ["2026-03-04", None, "2026-03-05", "2026-03-09"] if steps == "dated" else [4, None, 5, 9]
    mapped = raw(task={"steps": steps})
    for mood, step, after in (("calm", [0, 1, 2], [0, 0, -1]), (None, [0, 2], [-1, -1])):
        found = rows(tmp_path, table(day=days, age=[20.0, 20.0, mood and 20.0, 20.0]), mapped)
        assert kept(found)[0] == step and kept(found)[3] == after


def test_dates_come_in_a_declared_form_or_as_dates(tmp_path) -> None:
    acts = ["walk", "rest", "walk", "rest"]
    german = raw(task={"steps": "dated", "date_format": "%d.%m.%Y"})
    days = ["01.03.2026", "27.02.2026", "04.03.2026", "2026-03-05"]
    found = rows(tmp_path, table(day=days, did=acts), german, "csv")
    assert found.action[: found.begin[-1]].tolist() == [0, 1, 1]
    for kind in (pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns", tz="UTC")):
        days = pa.array([datetime(2026, 3, d) for d in (2, 1, 4)] + [None]).cast(kind)
        found = rows(tmp_path, table(day=days, did=acts), german)
        assert found.action[: found.begin[-1]].tolist() == [0, 1, 1]


@pytest.mark.parametrize("steps", ["numbered", "ordered", "dated"])
def test_a_row_without_a_step_is_left_out(tmp_path, steps) -> None:
    days = ["2026-03-01", None] if steps == "dated" else [1, None]
    found = rows(tmp_path, table(day=days, did=["rest", "walk"]), raw(task={"steps": steps}))
    assert found.action[: found.begin[-1]].tolist() == [0]


def test_people_are_told_apart_in_every_piece_of_a_file(tmp_path, monkeypatch) -> None:
    """Ids that look like numbers in one piece and not in another still are the same people."""
    monkeypatch.setattr(reading, "PIECE", 2)
    who = ["7", "7", "x", "7", "x", "08", "8", "8.0"]
    found = rows(tmp_path, table(who=who, stay=list(range(8)), day=[1] * 8), raw(), "csv")
    assert found.people == 5
    assert sorted(np.diff(found.begin).tolist()) == [1, 1, 1, 2, 3]


def test_people_beyond_the_declared_number_are_left_out(tmp_path) -> None:
    found = rows(tmp_path, table(who=list("abcd"), day=[1] * 4), raw(data={"people": 3}))
    assert found.people == 3


def test_order_and_format_of_the_file_do_not_matter(tmp_path) -> None:
    problem = chain()
    made = simulate_log(problem, uniform(problem), 300, np.random.default_rng(0))
    mapped = mapping(problem)
    statistic = LoggedVisits(mapped.task, 6, mapped.max_return)
    sums = []
    for name in ("log.parquet", "log.csv"):
        path = write_log(made, tmp_path / name)
        sums.append(counted(statistic, open_log(path, mapped).read().log))
    shuffled = pyarrow.parquet.read_table(tmp_path / "log.parquet")
    order = np.random.default_rng(1).permutation(shuffled.num_rows)
    pyarrow.parquet.write_table(shuffled.take(pa.array(order)), tmp_path / "shuffled.parquet")
    sums.append(counted(statistic, open_log(tmp_path / "shuffled.parquet", mapped).read().log))
    folder = tmp_path / "folder"
    folder.mkdir()
    half = shuffled.num_rows // 2
    for i, part in enumerate((shuffled.slice(0, half), shuffled.slice(half))):
        pyarrow.parquet.write_table(part, folder / f"{i}.parquet")
    sums.append(counted(statistic, open_log(folder, mapped).read().log))
    for other in sums:
        assert np.array_equal(other, counted(statistic, made))


def counted(statistic, log):
    out = np.zeros(statistic.layout.size, dtype=np.int64)
    statistic.add(log, out)
    return out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"columns": {"step": "d"}}, "no column 'd'.*did you mean|known"),
        ({"colums": {}}, "no key 'colums'.*columns"),
        ({"action": {"size": 3}}, "exactly one of values"),
        ({"state": []}, r"at least one table \[\[state\]\]"),
        ({"task": {"horizon": 0}}, "horizon"),
        ({"reward": {"range": [1, 0]}}, "range"),
        ({"data": {"name": ""}}, "name"),
        ({"budget": {"epsilon": 0}}, "epsilon"),
        ({"task": {"terminal": ["tired"]}}, "tired"),
        ({"task": {"terminal": 3}}, "terminal = 3, but it must be a list"),
        ({"task": {"allowed": "rest"}}, "it must be a list"),
        ({"reward": {"range": [0, 1, 2]}}, "least and the largest"),
        ({"reward": {"range": [-1.7e308, 1.7e308]}}, "a finite width apart"),
        ({"task": {"steps": "dated", "date_format": "%Q"}}, "date_format cannot be used"),
        ({"task": {"date_format": "%Y"}}, 'date_format is for steps = "dated"'),
        ({"action": {"values": ["rest", "Rest"]}}, "differ at most in case or spaces"),
        ({"action": {"values": ["rest", " rest"]}}, "differ at most in case or spaces"),
        ({"action": {"values": ["rest", ""]}}, "a missing value goes to other"),
        ({"reward": {"missing": 11}}, "missing = 11, but .* <= 10"),
    ],
)
def test_mistakes_in_the_mapping_are_told(tmp_path, change, said) -> None:
    with pytest.raises(InvalidInput, match=said):
        rows(tmp_path, table(did=["rest"]), raw(**change))


def test_a_log_that_is_not_there_is_told_and_an_empty_one_is_read(tmp_path) -> None:
    for path, said in (("none.csv", "no log"), ("x.txt", "must be")):
        if path == "x.txt":
            (tmp_path / path).write_text("x")
        with pytest.raises(InvalidInput, match=said):
            open_log(tmp_path / path, raw())
    nobody = table(who=pa.array([None, None], pa.string()))
    for empty in (nobody, {name: column[:0] for name, column in nobody.items()}):
        for ending in ("csv", "parquet"):
            found = rows(tmp_path, empty, raw(), ending)
            assert found.people == 0 and not any(map(len, found[1:]))
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match="cannot be read as a log"):
        open_log(tmp_path / "bad.parquet", raw())


@pytest.fixture
def episodes(monkeypatch) -> LogMapping:
    """The mapping of a Minari data set with one episode."""
    episode = SimpleNamespace(
        id=4,
        observations=np.array([0, 1, 2]),
        actions=np.array([1, 0]),
        rewards=np.array([0.0, 1.0]),
        terminations=np.array([False, True]),
    )
    one = SimpleNamespace(shape=())
    held = SimpleNamespace(
        iterate_episodes=lambda: iter([episode]), observation_space=one, action_space=one
    )
    package = ModuleType("minari")  # also where it is not installed
    package.__spec__ = ModuleSpec("minari", None)
    package.load_dataset = lambda name: held  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "minari", package)
    return make_mapping(
        {
            "data": {"name": "m"},
            "columns": {"person": "person", "step": "step", "reward": "reward", "ends": "ends"},
            "state": [{"column": "observation", "size": 3}],
            "action": {"column": "action", "size": 2},
            "task": {"horizon": 5},
        }
    )


def test_a_minari_data_set_is_a_log(episodes) -> None:
    found = open_log("minari:any", episodes).read().log
    assert kept(found) == [[0, 1], [0, 1], [1, 0], [1, 3]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"observations": np.array([0, 1])},
        {"observations": np.array([0, "x", {}], dtype=object)},
        {"rewards": np.array([0.0])},
        {"actions": np.array([[1], [0]])},
        {"terminations": np.zeros(5, dtype=bool)},
    ],
    ids=str,
)
def test_an_episode_of_another_form_keeps_no_other_from_being_read(episodes, wrong) -> None:
    held = sys.modules["minari"].load_dataset("any")
    (one,) = held.iterate_episodes()
    alone = open_log("minari:any", episodes).read()
    other = SimpleNamespace(**{**vars(one), "id": 3, **wrong})
    held.iterate_episodes = lambda: iter([other, one])
    log, exact = open_log("minari:any", episodes).read()
    assert kept(log) == kept(alone.log) and not exact.stopped
    assert exact.left["are an episode of another form"] == 1


PEOPLE_COUNTED = (
    "Of one person every pair of state and action is counted once, over all episodes, up to a "
    "fixed number of pairs."
)
EPISODES_COUNTED = (
    "Of one episode every pair of state and action is counted once, up to a fixed number of pairs. "
    "Where this page speaks of people it means episodes: nobody knows whose they are."
)


def test_of_a_minari_data_set_an_episode_is_promised_and_no_person(episodes) -> None:
    """Nobody knows whose its episodes are; a log with persons is covered over all of theirs."""
    result = offline("minari:any", episodes, TacitOffline(1.0), noise="simulated")
    words, page = result.guarantee.statement(), render_page(result)
    assert result.guarantee.brief() == "joint epsilon 1, delta 1e-05 per participation"
    assert "the trajectory of any single participation by any other" in words
    assert (
        f"Assumes: {EPISODES}." in words and "nothing is promised about a person with" in EPISODES
    )
    for text in (words, page):
        assert "all their" not in text and "same way in all of" not in text
    assert "for each episode alone" in page and EPISODES in page
    assert " episodes (a noisy number)" in page
    assert EPISODES_COUNTED in page and PEOPLE_COUNTED not in page
    rows = open_log("minari:any", episodes).read().log
    named = offline(rows, episodes, TacitOffline(1.0), noise="simulated")
    assert named.guarantee.unit == "user" and named.guarantee.assumptions == ASSUMES
    assert "for each person over all their episodes" in (said := render_page(named))
    assert " people (a noisy number)" in said
    assert PEOPLE_COUNTED in said and EPISODES_COUNTED not in said
    online = dataclasses.replace(named.guarantee, participations=1, rule=None)
    for made, whom in ((result, "participation"), (named, "user")):
        (both,) = LogPrior.of(made).stated(online).also
        assert both.unit == whom and both.mu > online.mu


def test_a_label_between_whole_numbers_is_not_the_one_below(tmp_path) -> None:
    mapped = raw(state=[{"column": "mood", "values": [1, 2.5], "other": "unknown"}])
    moods = [1.0, 1.5, 2.5]
    found = rows(tmp_path, table(mood=moods), mapped)
    assert kept(found)[1] == [0, 2, 1]


def test_truth_in_a_mapping_is_that_of_a_log(tmp_path) -> None:
    mapped = raw(state=[{"column": "mood", "values": [True, False]}])
    for ending in ("parquet", "csv"):
        found = rows(tmp_path, table(mood=[False, True, None]), mapped, ending)
        assert kept(found)[1] == [1, 0]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64(), pa.int8()])
def test_whole_numbers_are_labels_in_any_type(tmp_path, kind) -> None:
    mapped = raw(state=[{"column": "mood", "values": [1, 2], "other": "unknown"}])
    found = rows(tmp_path, table(mood=pa.array([1, 2, None], kind)), mapped)
    assert kept(found)[1] == [0, 1, 2]


def test_a_mapping_without_rewards_says_what_they_count_as() -> None:
    assert mapping(chain()).notes == ()
    bare = {**RAW, "columns": {"person": "who"}, "reward": {}}
    (said,) = make_mapping(bare).notes
    assert "all of them count as 0" in said


def test_the_notes_of_a_mapping_are_on_its_page(tmp_path) -> None:
    columns = {"person": "who", "step": "day"}
    mapped = make_mapping({**RAW, "columns": columns, "reward": {}})
    log = rows(tmp_path, table(did=["rest"]), mapped)
    page = render_page(offline(log, mapped, TacitOffline(1.0), noise="simulated"))
    assert "all of them count as 0" in page


def test_terminal_states_without_a_column_of_ends_must_have_rows() -> None:
    first = RAW["state"][0]["values"][0]
    states = {"state": RAW["state"][:1]}
    terminal = {**RAW["task"], "terminal": [first]}
    notes = make_mapping({**RAW, **states, "task": terminal}).notes
    assert [("a row in a terminal state" in said) for said in notes] == [True]
    ends = {**RAW["columns"], "ends": "quit"}
    assert not make_mapping({**RAW, **states, "task": terminal, "columns": ends}).notes


def folder_of(tmp_path, *parts):
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, part in enumerate(parts):
        pyarrow.parquet.write_table(pa.table(part), folder / f"{i}.parquet")
    return folder


def test_files_of_a_folder_may_have_types_of_their_own(tmp_path) -> None:
    """One value that is no number makes a column of texts of its file, and of no other."""
    typed = table(who=[7, 8], day=[1, 1], age=pa.array([20, 70], pa.float16()))
    texts = table(who=["7", "x"], day=["2", "no"], age=["70", "old"], score=["0", "?"])
    coded = table(who=[8], day=[2], mood=pa.array(["tense"]).dictionary_encode(), score=[None])
    coded["age"] = pa.array([20.0]).dictionary_encode()
    log, exact = open_log(folder_of(tmp_path, typed, texts, coded), raw()).read()
    assert log.begin.tolist() == [0, 2, 4, 4]  # 7, 8 and x
    assert kept(log) == [[0, 1, 0, 1], [2, 3, 0, 2], [0, 0, 0, 0], [3, -1, 2, -1]] or (
        kept(log) == [[0, 1, 0, 1], [0, 2, 2, 3], [0, 0, 0, 0], [2, -1, 3, -1]]
    )
    assert exact.rows == 5 and exact.kept == 4 and not exact.stopped
    csv_too = tmp_path / "parts" / "3.csv"
    pyarrow.csv.write_csv(pa.table(table(who=["8"], day=[3])), csv_too)
    assert open_log(tmp_path / "parts", raw()).read().log.people == 3


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_file_of_a_folder_has_the_columns(tmp_path, ending) -> None:
    folder = folder_of(tmp_path, table(day=[1, 2]))
    bare = pa.table({name: x for name, x in table(day=[1]).items() if name != "score"})
    if ending == "csv":
        pyarrow.csv.write_csv(bare, folder / "1.csv")
    else:
        pyarrow.parquet.write_table(bare, folder / "1.parquet")
    with pytest.raises(InvalidInput, match=f"1.{ending} has no column 'score'"):
        open_log(folder, raw())
    (folder / f"1.{ending}").unlink()
    (folder / "1.csv").write_text("who,who,stay,day,score,mood,age,did\n")
    with pytest.raises(InvalidInput, match="several columns 'who'"):
        open_log(folder, raw())


def test_a_row_longer_than_a_piece_keeps_no_other_from_being_read(tmp_path, monkeypatch) -> None:
    lines = [f"{who},1,1,{who % 7},calm,20,rest" for who in range(1000)]
    lines[500] = "500,1,1,3," + "x" * 3_000 + ",20,rest"
    lines[100] += ",1"
    lines[900] += ",1"
    (tmp_path / "log.csv").write_text("\n".join(["who,stay,day,score,mood,age,did", *lines, ""]))
    found = []
    for block in (8 << 20, 1024):
        monkeypatch.setattr(reading, "BLOCK", block)
        log, exact = open_log(tmp_path / "log.csv", raw()).read()
        found.append([column.tobytes() for column in log] + [exact])
    assert found[0] == found[1] and exact.kept == 998 and not exact.stopped
    assert exact.left["have too many or too few cells"] == 2


ODD = b'\n \r \r\n , "" """ \x00 \xff a \xef\xbb\xbf'.split(b" ")


def test_what_is_read_of_a_row_does_not_depend_on_where_it_lies(tmp_path, monkeypatch) -> None:
    """Lines that are none and rows with anything in quotes, wherever a piece ends."""
    rng, names = np.random.default_rng(0), b"who,stay,day,score,mood,age,did\n"

    def line(k: int) -> bytes:
        inside = b"".join(ODD[i] for i in rng.integers(len(ODD), size=rng.integers(1, 30)))
        quoted = b'"' + inside.replace(b'"', b'""') + b'"'
        none = b",".join([quoted] * int(rng.integers(1, 7))) + b"\n"
        return none if k % 5 == 4 else b"%d,1,1,3,%s,20,rest\r\n" % (k, quoted)

    lines = [line(k) for k in range(60)]
    (tmp_path / "log.csv").write_bytes(names + b"".join(lines))
    pieces = []
    for block in (8 << 20, *range(3, 400, 7)):
        monkeypatch.setattr(reading, "BLOCK", block)
        exact = ExactNumbers()
        found = pa.Table.from_batches(reading._csv(tmp_path / "log.csv", raw(), exact))
        pieces.append((found.to_pydict(), exact))
    assert all(piece == pieces[0] for piece in pieces)
    assert pieces[0][0]["who"] == [b"%d" % k for k in range(60) if k % 5 != 4]
    moods = [text for k, text in enumerate(lines) if k % 5 != 4]
    for mood, text in zip(pieces[0][0]["mood"], moods, strict=True):
        assert b'"' + (mood or b"").replace(b'"', b'""') + b'"' in text
    assert pieces[0][1].rows == pieces[0][1].left["have too many or too few cells"] == 12


@pytest.mark.parametrize("first", ["a,1,1,calm", "who;stay;day;mood", "x" * 200_000, "", '"who'])
def test_a_first_line_that_names_no_columns_is_not_quoted(tmp_path, first) -> None:
    (tmp_path / "log.csv").write_text(f"{first}\nb,1,1,tense\n")
    with pytest.raises(InvalidInput) as refused:
        open_log(tmp_path / "log.csv", raw())
    assert not {"calm", "tense", ";"} & set(str(refused.value).replace("'", " ").split())
    assert "with commas between them" in str(refused.value) or first[0] in 'x"'


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"mood": [["calm"]]}, "cannot be read as a log"),
        ({"who": [{"name": "a"}]}, "cannot be read as a log"),
        ({"score": [datetime(2026, 3, 1)]}, "column 'score' holds dates"),
        ({"day": [datetime(2026, 3, 1)]}, 'steps = "dated"'),
        ({"age": pa.array([1], pa.duration("s"))}, "column 'age' holds dates or times"),
    ],
)
def test_a_type_that_cannot_be_meant_is_refused_before_a_row_is_there(
    tmp_path, column, said
) -> None:
    for rows in (1, 0):
        made = pa.table(table(day=[1]) | column).slice(0, rows)
        pyarrow.parquet.write_table(made, tmp_path / "log.parquet")
        with pytest.raises(InvalidInput, match=said):
            open_log(tmp_path / "log.parquet", raw())


def test_values_that_are_all_missing_have_no_type_and_are_read(tmp_path) -> None:
    nothing = {name: pa.nulls(2) for name in ("stay", "score", "mood", "age", "did")}
    _, exact = open_log(folder_of(tmp_path, table(day=[1, 2]) | nothing), raw()).read()
    assert exact.rows == 2 and exact.kept == 0 and not exact.stopped
    assert exact.columns["reward", "score"]["missing"] == 2
    nobody = table(day=[1, 2]) | {"who": pa.nulls(2)}
    pyarrow.parquet.write_table(pa.table(nobody), tmp_path / "parts" / "0.parquet")
    assert open_log(tmp_path / "parts", raw()).read().exact.left["have no person"] == 2


@pytest.mark.parametrize(
    "who",
    [
        pa.array(["", None, "a"]),
        pa.array(["", None, "a"]).dictionary_encode(),
        pa.array([b"", None, b"a"]),
        pa.array([np.nan, None, 1.0], pa.float32()),
        pa.array([np.nan, None, 1.0]),
    ],
    ids=lambda who: str(who.type),
)
def test_rows_whose_person_is_empty_or_no_number_are_nobodys(tmp_path, who) -> None:
    """Taken for one person, somebody without a key would move that one, and miss beside it."""
    made = table(day=[1, 1, 1]) | {"who": who}
    pyarrow.parquet.write_table(pa.table(made), tmp_path / "log.parquet")
    _, exact = open_log(tmp_path / "log.parquet", raw()).read()
    assert exact.left["have no person"] == 2 and exact.people == exact.kept == 1


def test_the_holder_is_told_what_does_not_fit_and_what_to_do(tmp_path) -> None:
    made = table(
        day=["1", "2", "3", "4", "x", None],
        mood=["Calm", "calm ", "odd", None, "calm", "calm"],
        age=["20", "old", "20", "20", "20", "20"],
        did=["rest", "fly", None, "rest", "rest", "rest"],
        score=["60", "-1", "?", None, "5", "0"],
        odds=["0.5", "0", "2", None, "no", "1"],
        quit=["maybe", "yes", None, "0", "no", "1"],
        who=["a", "a", "a", "a", "a", "a"],
    )
    columns = {**RAW["columns"], "propensity": "odds", "ends": "quit"}
    mapped = raw(columns=columns, task={"first_step": 0})
    pyarrow.csv.write_csv(pa.table(made), tmp_path / "log.csv")
    with (tmp_path / "log.csv").open("ab") as file:
        file.write(b"1,2\n,1,1,0,calm,20,rest,0,1\n")
    _, exact = open_log(tmp_path / "log.csv", mapped).read()
    lines = exact.lines(mapped)
    assert all(line.endswith(MARK) for line in lines)
    assert [line.removesuffix(MARK).strip() for line in lines] == TOLD.strip().split("\n")


def test_the_holder_is_told_of_steps_before_the_first(tmp_path) -> None:
    pyarrow.csv.write_csv(pa.table(table(day=[0, 1, 2])), tmp_path / "log.csv")
    _, exact = open_log(tmp_path / "log.csv", raw()).read()
    said = "rows that lie before the first step: 1; let [task] first_step be the number of the"
    assert any(line.startswith(said) for line in exact.lines(raw()))


TOLD = """
rows: 8
rows that count: 1
people: 1
rows that have too many or too few cells: 1
rows that have no person: 1
rows that have no readable step: 2
rows that lie after the last step: 2
rows that have an undeclared state: 1
column 'day', step: 1 of 6 values are missing: their rows do not count
column 'day', step: 1 of 6 values are no whole number: their rows do not count
column 'day', step: no row has the number 0; let [task] first_step be the number of the first step
column 'score', reward: 1 of 6 values are missing: count as 5, which [reward] missing says
column 'score', reward: 1 of 6 values are no number: count as 5, which [reward] missing says
column 'score', reward: 2 of 6 values lie outside of 0 to 10 and were cut; let [reward] range hold \
every reward that can occur
column 'odds', propensity: 1 of 6 values are missing: by weights, their episodes count for nothing
column 'odds', propensity: 3 of 6 values are no chance above 0 and at most 1: by weights, their \
episodes count for nothing
column 'quit', ends: 1 of 6 values are missing: no end
column 'quit', ends: 1 of 6 values are neither true nor false: no end
column 'mood', [[state]] 1: 1 of 6 values are missing: count as 'unknown'
column 'mood', [[state]] 1: 3 of 6 values are none of the declared labels (calm, tense, unknown): \
count as 'unknown'; labels are compared letter by letter, so spell them as the log does
column 'mood', [[state]] 1: 2 of them would be declared if case and spaces did not matter; they \
do: spell labels as the log does
column 'age', [[state]] 2: 1 of 6 values are no number: their rows do not count
column 'did', [action]: 1 of 6 values are missing: their rows teach nothing
column 'did', [action]: 1 of 6 values are none of the declared labels (rest, walk): their rows \
teach nothing; labels are compared letter by letter, so spell them as the log does
"""


GARBAGE = (
    *("", "NA", "null", "abc", "now", "today", "NaT", "nan", "-inf", "1e400", "0x10", "1_000"),
    *("٣", "0.30000000000000004", "-1", "2.5", "18446744073709551616", "1704067200", "20260301"),
    *("01/02/2026", "2026-02-31", "9999-12-31", "0001-01-01T00:00+14:00", "2026-03-01T00:00-23:59"),
    *("2026-03-01T00:00:00.123456789", "2026-03-01 10:00:00Z", "2026-W10-7", "true", "calm", "7"),
)


DAYS = {
    "numbered": ["1", "2", "3", "2.5"],
    "ordered": ["1", "2", "+6E50", "6.0000000000000005e+50"],
    "dated": ["2026-03-01", "2026-02-27T08:00", "2026-03-01T00:00:00.000001+02:00", "20260228"],
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("steps", list(DAYS))
def test_what_one_person_did_never_changes_how_others_are_read(tmp_path, steps, ending) -> None:
    """Any texts in the rows of one person, in any place: no bit of the others' rows moves."""
    mapped = raw(
        columns={**RAW["columns"], "propensity": "odds", "ends": "quit"}, task={"steps": steps}
    )
    usual = {
        "stay": ["1", "2"],
        "day": DAYS[steps],
        "mood": ["calm", "tense"],
        "age": ["29", "30", "59.9"],
        "did": ["rest", "walk"],
        "score": ["1", "0.3"],
        "odds": ["0.5", "0.1234567890123456789"],
        "quit": ["0", "0", "yes"],
    }
    rng = np.random.default_rng(0)

    def life(who, clean):
        return [
            (
                who,
                *(str(rng.choice(x if rng.random() < clean else GARBAGE)) for x in usual.values()),
            )
            for _ in range(rng.integers(1, 9))
        ]

    def lives(rows):
        made = dict(zip(("who", *usual), map(pa.array, zip(*rows, strict=True)), strict=True))
        path = tmp_path / f"log.{ending}"
        write = pyarrow.csv.write_csv if ending == "csv" else pyarrow.parquet.write_table
        write(pa.table(made), path)
        log = open_log(path, mapped).read().log
        cut = [np.split(column, log.begin[1:]) for column in log[1:]]
        return [b"".join(part.tobytes() for part in person) for person in zip(*cut, strict=True)]

    for _ in range(40):
        others = [row for who in "abcd" for row in life(who, clean=0.9)]
        found = []
        for clean in (1.0, 0.2):
            rows = list(others)
            for row in life("x", clean):
                rows.insert(int(rng.integers(len(rows) + 1)) if rng.random() < 0.7 else 0, row)
            found.append(lives(rows)[:5])
        assert sum(one != other for one, other in zip(*found, strict=True)) <= 1
