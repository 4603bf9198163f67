"""The imports that docs/reference/mockbroker.md names work, and are public."""

import ast
import importlib
from pathlib import Path

import mockbroker

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "mockbroker.md"


def test_the_documented_imports_are_public() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Imports\n")[2]
    code = section.partition("```python\n")[2].partition("```")[0]
    imports = [each for each in ast.parse(code).body if isinstance(each, ast.ImportFrom)]
    assert imports
    for each in imports:
        assert each.module is not None
        module = importlib.import_module(each.module)
        for name in each.names:
            assert name.name in module.__all__, f"{each.module}.{name.name}"
            assert hasattr(module, name.name)


async def test_brokers_have_the_ids_and_racks_they_are_given() -> None:
    brokers = [mockbroker.Broker(1, rack="a"), mockbroker.Broker(7, rack="b")]
    async with mockbroker.MockCluster(brokers, topics=["foo=1,7"]) as mock:
        assert list(mock.addresses) == [1, 7]
        assert {each.rack for each in mock.cluster.brokers.values()} == {"a", "b"}
