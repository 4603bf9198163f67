"""The stubs of the methods of operations are those of the declarations."""

import ast

import pytest

from mockbroker.simulation.operations import OPERATIONS
from scripts import operation_stubs


def test_the_committed_stubs_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert operation_stubs.main(["--check"]) == 0
    assert capsys.readouterr().out == ""


def test_a_stale_stub_is_named(monkeypatch, capsys):
    monkeypatch.setattr(operation_stubs, "OPERATIONS", {"advance": OPERATIONS["advance"]})
    assert operation_stubs.main(["--check"]) == 1
    assert capsys.readouterr().out.count("is stale") == len(operation_stubs.STUBS)


@pytest.mark.parametrize("path", operation_stubs.STUBS)
def test_every_class_has_every_method(path: str) -> None:
    stub = ast.parse((operation_stubs.ROOT / path).read_text("utf-8"))
    classes = [each for each in stub.body if isinstance(each, ast.ClassDef)]
    assert [each.name for each in classes] == list(operation_stubs.STUBS[path])
    for each in classes:
        methods = [
            it.name for it in each.body if isinstance(it, ast.AsyncFunctionDef | ast.FunctionDef)
        ]
        assert methods == [operation.method for operation in OPERATIONS.values()]
