"""Which words of README.md the walk of a new user replaces. ``.ci/run`` shows that it passes."""

from pathlib import Path

import pytest

from scripts.new_user import Walk, WalkError

WHEEL = Path("kproto.whl")
HERE = [".", "./kproto", "kproto @ git+https://host.example/kproto", "git+https://host.example/k"]
EXTRAS = [".[mock]", "./kproto[mock]", "kproto[mock] @ git+https://host.example/kproto"]
OTHERS = ["kafka-python", "pytest", "kproto[mock]", "kproto", "./other", "--out"]


@pytest.fixture
def walk(tmp_path: Path) -> Walk:
    return Walk(tmp_path, WHEEL)


@pytest.mark.parametrize(
    ("words", "wanted"), [(HERE, ["kproto.whl"] * 4), (EXTRAS, ["kproto.whl[mock]"] * 3)]
)
def test_a_checkout_is_the_wheel(walk: Walk, words: list[str], wanted: list[str]) -> None:
    assert [walk._argument(word) for word in words] == wanted
    assert [walk._argument(word) for word in OTHERS] == OTHERS


@pytest.mark.slow
def test_a_page_runs_in_order_and_stops_at_the_first_failure(walk, capsys):
    page = """
```python
first = 1
```
```sh
make demo            # needs a checkout
python -c 'print("hel" + "lo")'
```
```python
assert first == 1
print("second", first)
```
"""
    walk.page(page)
    printed = capsys.readouterr().out
    assert printed.index("not run") < printed.index("\nhello\n") < printed.index("\nsecond 1\n")
    with pytest.raises(WalkError, match="exit code 3"):
        walk.page("```console\n$ python -c 'raise SystemExit(3)'\nnothing\n```")
