"""Text of peers as text, JSON and comma-separated values."""

import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.safe_text import csv_line, json_text, printable, printable_lines

TEXTS = st.text(st.characters() | st.characters(categories=["Cc", "Cf", "Cs", "Zl"]))


@given(TEXTS)
def test_printable_text_has_no_control_characters(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert text != shown or text.isprintable()


@given(st.recursive(TEXTS | st.integers(), lambda inner: st.dictionaries(TEXTS, inner)))
def test_json_is_printable_and_exact(value: object) -> None:
    for indent in (None, 1):
        text = json_text(value, indent=indent)
        assert text.replace("\n", "").isprintable()
        # A pair of escapes means one character, also if the two surrogates were lone before.
        assert json.loads(text) == json.loads(json.dumps(value))


@pytest.mark.parametrize("char", "\u034f\u115f\u180b\u2800\u3164\ufe0f\uffa0\U000e0100")
def test_invisible_characters_are_escaped_though_python_calls_them_printable(char: str) -> None:
    assert char.isprintable()
    assert printable(char).isascii()
    assert json.loads(json_text(char)) == char
    assert json_text(char).isascii()


def test_what_can_be_read_stays() -> None:
    assert printable("Grüße, 日本, 😀, \\") == "Grüße, 日本, 😀, \\"
    assert json_text(["Grüße"], compact=True) == '["Grüße"]'
    assert printable("a\tb\n") == r"a\tb\n"
    assert printable_lines("a\tb\n\x1b") == "a\\tb\n\\x1b"
    assert printable_lines("a\tb\n\x1b", tabs=True) == "a\tb\n\\x1b"


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        (" =1+1", "' =1+1"),
        ("+1|cmd", "'+1|cmd"),
        ("-1+cmd", "'-1+cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\uff1d1", "'\uff1d1"),
        ("\t=1", r"\t=1"),
        ("\r=1", r"\r=1"),
        ("-12.5e3", "-12.5e3"),
        ("+7", "+7"),
        (-5, "-5"),
        (-0.5, "-0.5"),
        (None, ""),
        ("a,b", '"a,b"'),
        ('=a"b', '"\'=a""b"'),
    ],
)
def test_cells_are_never_formulas_and_numbers_stay_numbers(cell: object, written: str) -> None:
    assert csv_line([cell, "x"]) == f"{written},x"


@given(st.lists(TEXTS | st.none() | st.integers(), min_size=1))
def test_a_row_is_one_line_of_as_many_cells(cells: list[object]) -> None:
    line = csv_line(cells)
    (row,) = csv.reader([line])
    assert line.isprintable()
    assert len(row) == len(cells)
