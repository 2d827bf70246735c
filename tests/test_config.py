"""The reader of files that people write: what is told first, what the environment may change."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tacit.config import anything, key, overridden, read_text, read_toml, section
from tacit.errors import InvalidInput
from tacit.validate import integer, number


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: int = key(integer, low=1)
    share: float = key(number, default=0.5, low=0.0, high=1.0)
    password: Any = key(anything, default="", secret=True)


@dataclass(frozen=True, kw_only=True)
class Whole:
    inner: Inner = key(Inner)
    other: Inner | None = key(Inner, default=None)
    free: dict[str, Any] = key(dict, missing="say what is {key} in {where}")


def read(**data: Any) -> Whole:
    return section(Whole, {"inner": {"size": 3}, "free": {}} | data, "the file")


def test_a_section_is_what_the_file_says_and_defaults() -> None:
    found = read(inner={"size": 2.0, "password": "hush"}, free={"any": [1]})
    assert found == Whole(inner=Inner(size=2, password="hush"), free={"any": [1]})
    assert found.inner.share == 0.5 and "hush" not in repr(found)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"inner": {"sise": 3}}, "[inner] has no key 'sise'; did you mean 'size'?"),
        ({"iner": {}, "inner": {"sise": 3}}, "the file has no key 'iner'; did you mean 'inner'?"),
        ({"inner": {"size": 0}, "other": {"x": 1}}, "[other] has no key 'x'; known: "),
        ({"inner": {"size": 0}, "free": 3}, "free must be a section, written [free] on a line"),
        ({"inner": {"size": 0}, "other": []}, "other must be a section, written [other] on a "),
        ({"inner": {}, "other": {"size": 0}}, "size in [other] = 0, but it must be a whole number"),
        ({"inner": {"share": 2, "size": "x"}}, "size in [inner] = 'x', but"),
        ({"inner": {"share": 0.1}}, "[inner] needs the key 'size'"),
    ],
)
def test_a_misspelt_key_is_told_before_a_wrong_value_and_a_missing_key_last(data, said) -> None:
    with pytest.raises(InvalidInput) as error:
        read(**data)
    assert str(error.value).startswith(said)


def test_sentences_can_be_a_files_own() -> None:
    with pytest.raises(InvalidInput, match="^say what is free in the file$"):
        section(Whole, {"inner": {"size": 1}}, "the file")
    with pytest.raises(InvalidInput, match="^choose.size = 0, but"):
        section(Inner, {"size": 0}, "[choose]", named="choose.{key}")
    with pytest.raises(InvalidInput, match="^a case must be a table of keys and values$"):
        section(Inner, [], "a case")


def test_what_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    with pytest.raises(InvalidInput, match="^nobody wrote one$"):
        read_text(path, "nobody wrote one")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_text(tmp_path, "")
    path.write_bytes(b"name = '\xe9'")
    with pytest.raises(InvalidInput, match="is not a text file in UTF-8"):
        read_text(path, "")
    for text in ("x = ", f"x = {'9' * 5000}", "x = " + "[" * 100_000):
        with pytest.raises(InvalidInput, match="not valid TOML"):
            read_toml(text)


def test_the_environment_overrides_known_sections_only(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(" for {task}\n")
    data: dict[str, Any] = {"inner": {"size": 1}, "other": 3}
    environ = {
        "TACIT_INNER_SIZE": "[2, 3]",
        "TACIT_INNER_SHARE": "0.25 and more of {task}",
        "TACIT_INNER_PASSWORD_FILE": str(secret),
        "TACIT_INNER_SISE": "true",
        "TACIT_OTHER_SIZE": "1",
        "TACIT_FREE_SIZE": "1",
        "TACIT_INNER_": "1",
        "OTHER_INNER_SIZE": "1",
    }
    keys = ("size", "share", "password")
    used = overridden(data, {"inner": keys, "other": keys}, environ, "coach")
    assert used == [f"TACIT_INNER_{name}" for name in ("PASSWORD_FILE", "SHARE", "SISE", "SIZE")]
    inner = {"size": [2, 3], "share": "0.25 and more of coach", "password": "for coach"}
    assert data == {"inner": {**inner, "sise": True}, "other": 3}
    with pytest.raises(InvalidInput, match="TACIT_INNER_SIZE_FILE names a file that cannot be"):
        overridden(data, {"inner": keys}, {"TACIT_INNER_SIZE_FILE": str(tmp_path / "no")}, "coach")
