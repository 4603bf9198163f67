"""Durations with units; a number alone is refused."""

import pytest

from kproto.durations import DurationError, parse_duration


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("200us", 200_000),
        ("500ms", 500_000_000),
        ("1.5s", 1_500_000_000),
        (" .5 s ", 500_000_000),
        ("2m", 120 * 10**9),
        ("1h", 3600 * 10**9),
        ("0", 0),
        ("0.1s", 100_000_000),
    ],
)
def test_units(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "ms", "-1s", "5q", "5 S", "nan", "1e3s", "1s2", "\u0665s"])
def test_no_duration(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration: use a number and a unit"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["5", "1.5", " 10 "])
def test_no_unit(text: str) -> None:
    number = text.strip()
    with pytest.raises(DurationError, match=f"has no unit: use {number}ms, {number}s or {number}m"):
        parse_duration(text)
