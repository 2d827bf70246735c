import re
import xml.etree.ElementTree as ElementTree

from hypothesis import given
from hypothesis import strategies as st

from tacit_service.dashboard.plots import (
    TALL,
    WIDE,
    BandPoint,
    bar,
    number_axis,
    overview,
    short,
    time_axis,
    users_over_time,
    value_over_users,
)

DAY = 86_400.0


@given(low=st.floats(-1e6, 1e6), reach=st.floats(1e-3, 1e9))
def test_number_axes_hold_their_range_in_few_round_marks(low: float, reach: float) -> None:
    axis = number_axis(low, low + reach, 0.0, 100.0)
    assert axis.low <= low + 1e-6 * reach and low + reach <= axis.high + 1e-6 * reach
    assert 2 <= len(axis.marks) <= 7
    steps = [b[0] - a[0] for a, b in zip(axis.marks, axis.marks[1:], strict=False)]
    assert max(steps) - min(steps) <= 1e-6 * max(steps) + 1e-9 * abs(axis.high)


@given(reach=st.floats(0.0, 2e9))
def test_time_axes_have_few_marks_inside(reach: float) -> None:
    axis = time_axis(1.7e9, 1.7e9 + reach, 0.0, 100.0)
    assert len(axis.marks) <= 5
    assert all(axis.low <= at <= axis.high for at, _ in axis.marks)


def test_time_axes_speak_in_fitting_words() -> None:
    start = 1_800_000_000.0
    assert [text for _, text in time_axis(start, start + 30, 0, 1).marks][0] == "08:00:00"
    assert [text for _, text in time_axis(start, start + 3 * 3600, 0, 1).marks][0] == "08:00"
    assert [text for _, text in time_axis(start, start + 3 * DAY, 0, 1).marks][0] == "16 Jan"
    assert time_axis(start, start + 2_000 * DAY, 0, 1).marks[0][1].isdigit()


def test_axis_numbers_are_short() -> None:
    found = [short(x) for x in (0.0, 0.25, 500.0, 2_000.0, 20_000.0, 3e6, 2.5e9)]
    assert found == ["0", "0.25", "500", "2,000", "20k", "3M", "2.5G"]


def numbers(svg: str) -> list[float]:
    """Every coordinate of what is drawn."""
    root = ElementTree.fromstring(svg)
    found = [float(node.get(name)) for node in root.iter() for name in ("cx",) if node.get(name)]
    for node in root.iter():
        found += [float(x) for x in re.findall(r"-?[\d.]+", node.get("points", ""))]
    return found


def test_plots_are_well_formed_and_stay_inside() -> None:
    points = [(0.0, 0), (10.0, 50), (400.0, 90)]
    drawn = users_over_time(points, (500.0, 120), 1_000)
    assert "120 reports counted so far, 90 of them in the newest policy" in drawn
    values = [BandPoint(50, 0.0, 1.0, 6.0), BandPoint(90, 0.5, 1.5, 3.0)]
    band = value_over_users(values, (0.0, 6.0))
    assert "from 0.5 to 3" in band
    for svg in (drawn, band):
        inside = numbers(svg)
        assert inside and 0 <= min(inside) and max(inside) <= max(WIDE, TALL)
        assert "style=" not in svg  # a strict content security policy forbids it


def test_the_population_is_drawn_once_it_is_near() -> None:
    assert "population" not in users_over_time([(0.0, 0)], (5.0, 10), 1_000)
    assert "population" in users_over_time([(0.0, 0)], (5.0, 900), 1_000)


def test_a_single_moment_and_a_single_value_can_be_drawn() -> None:
    one = users_over_time([(5.0, 0)], (5.0, 1), 1)
    flat = [BandPoint(1, 2.0, 2.0, 2.0), BandPoint(2, 2.0, 2.0, 2.0)]
    bare = value_over_users(flat, (0.0, 2.0), "Value hoped for")
    assert "Value hoped for" in bare and "with no band" in bare and "from 2 to 2" not in bare
    for drawn in (one, bare):
        assert ElementTree.fromstring(drawn).tag.endswith("svg") and "nan" not in drawn.lower()


def test_bars_are_clipped_and_say_what_they_mean() -> None:
    assert 'width="100.0"' in bar(1.7, "too much")
    assert 'aria-label="&lt;half&gt;"' in bar(0.5, "<half>")


def test_an_overview_merges_runs_and_covers_every_cell() -> None:
    table = [[0, 1], [0, 9], [1, 1]]  # stages by states
    root = ElementTree.fromstring(overview(table, "map"))
    cells = {}
    for rect in root:
        x, y, width = (int(rect.get(name)) for name in ("x", "y", "width"))
        cells |= {(y, x + k): rect.get("class") for k in range(width)}
    expected = {(s, h): f"a{table[h][s] % 8}" for h in range(3) for s in range(2)}
    assert cells == expected
    assert len(root) == 5
