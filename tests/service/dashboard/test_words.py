import pytest

from tacit_service.dashboard import words

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0"), (7, "7"), (12_345, "12,345"), (999_999, "999,999"), (2_500_000, "2.5 million")],
)
def test_counts(number: int, said: str) -> None:
    assert words.whole(number) == said


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0.0, "0"),
        (0.12345, "0.123"),
        (3.14159, "3.14"),
        (42.0, "42.0"),
        (1234.5, "1,234"),
        (0.000123, "1.23e-04"),
        (-2.5, "-2.50"),
        (12_345_678.0, "1.23e+07"),
    ],
)
def test_measured_numbers(number: float, said: str) -> None:
    assert words.real(number) == said


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0%"), (0.0001, "under 0.1%"), (0.123, "12.3%"), (0.9999, "over 99.9%"), (1, "100%")],
)
def test_shares_are_never_rounded_to_all_or_nothing(share: float, said: str) -> None:
    assert words.percent(share) == said


@pytest.mark.parametrize(
    ("away", "said"),
    [
        (0.2, "just now"),
        (-1.0, "1 second ago"),
        (-59, "59 seconds ago"),
        (-119, "119 seconds ago"),
        (-180, "3 minutes ago"),
        (7200, "in 2 hours"),
        (-86400 * 3, "3 days ago"),
        (86400 * 365.25 * 10, "in 10.0 years"),
    ],
)
def test_relative_times(away: float, said: str) -> None:
    assert words.relative(NOW + away, NOW) == said


def test_moments_are_utc() -> None:
    assert words.moment(NOW) == "2027-01-15 08:00:00 UTC"
    assert words.iso(NOW) == "2027-01-15T08:00:00Z"
    assert words.counted(1, "user") == "1 user"
    assert words.counted(2_000, "user") == "2,000 users"
    assert words.length(0.2) == "less than a second"
