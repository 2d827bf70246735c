"""Tables: as recorded, to the last bit. ``record.py`` says what that means."""

import pytest

from golden.record import check, names


@pytest.mark.parametrize("name", names("tabular"))
def test_as_recorded(name: str) -> None:
    check("tabular", name)
