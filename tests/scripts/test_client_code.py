"""The generated parts of the clients are those of the declarations."""

import pytest

from mockbroker.simulation.operations import OPERATIONS
from scripts import operation_stubs
from scripts.client_code import files
from scripts.client_code.description import description
from tests.support.toolchain import require


@pytest.mark.go
def test_the_generated_parts_are_not_stale(capsys, monkeypatch):
    require("go")  # gofmt
    assert operation_stubs.main(["--check"]) == 0, capsys.readouterr().out
    name = next(iter(files.FILES))
    monkeypatch.setitem(files.FILES, name, lambda _found: "another text")
    assert operation_stubs.main(["--check"]) == 1
    told = f"{name} is stale; run python -m scripts.operation_stubs\n"
    assert capsys.readouterr().out == told


def test_every_operation_and_option_is_described() -> None:
    found = description()
    assert {each.name for each in found.operations} == set(OPERATIONS)
    for each in found.operations:
        optional = [argument.required for argument in each.arguments].count(False)
        assert optional == 0 or not each.arguments[-1].required, each
        assert optional <= 1, each
