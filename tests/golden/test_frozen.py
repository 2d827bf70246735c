"""Commands, files, terms, stored data: as recorded. ``frozen.py`` says what is held."""

import pytest

from golden.record import check, names


@pytest.mark.parametrize("name", names("frozen"))
def test_as_recorded(name: str) -> None:
    check("frozen", name)
