from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.cli.options import assignments, read
from tacit.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "annotation", "value"),
    [
        ("1e5", int, 100_000),
        ("12", int, 12),
        ("12.0", int, 12),
        ("1/8", float, 0.125),
        ("1e-5", float, 1e-5),
        ("3", float, 3.0),
        ("none", float | None, None),
        ("0.5", float | None, 0.5),
        ("None", int | None, None),
        ("True", bool, True),
        ("off", bool, False),
        ("vtr", Literal["classic", "vtr"], "vtr"),
        ("8x8", Any, "8x8"),
        ("false", Any, False),
        ("7", Any, 7),
        ("0.25", Any, 0.25),
    ],
)
def test_values_are_read_as_declared(text: str, annotation: Any, value: object) -> None:
    got = read(text, "x", annotation)
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    ("text", "annotation"),
    [("1.5", int), ("x", int), ("1/0", float), ("", float), ("1e999", int), ("2", bool)],
)
def test_what_cannot_be_read_is_named(text: str, annotation: Any) -> None:
    with pytest.raises(InvalidInput, match="x = "):
        read(text, "x", annotation)


@given(st.integers(-(10**30), 10**30))
def test_whole_numbers_are_exact(number: int) -> None:
    assert read(str(number), "x", int) == number


def test_dashes_and_underscores_are_one() -> None:
    assert assignments(["bonus-scale=2"], "-A") == {"bonus_scale": "2"}
    assert assignments(["map_name=a=b"], "-P") == {"map_name": "a=b"}
