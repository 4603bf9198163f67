"""docs/explanation/design.md shows the layers of the import contracts, in their order."""

import re
import tomllib

import pytest

from tests.docs.shell import ROOT

PAGE = (ROOT / "docs/explanation/design.md").read_text()
CONTRACTS = {
    each["id"]: each
    for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
}


def layers_of(contract: str) -> list[str]:
    """The layers, without those that are announced in brackets and not written yet."""
    layers = []
    for layer in CONTRACTS[contract]["layers"]:
        separator = "|" if "|" in layer else ":"
        modules = [module.strip() for module in layer.split(separator)]
        written = [module for module in modules if not module.startswith("(")]
        if written:
            layers.append({"|": " \\| ", ":": ", "}[separator].join(f"`{m}`" for m in written))
    return layers


@pytest.mark.parametrize(
    ("package", "contract"),
    [
        ("kproto", "kproto-layers"),
        ("mockbroker", "mockbroker-layers"),
        ("mockbroker.simulation", "simulation-layers"),
        ("mockbroker.proxy", "proxy-layers"),
        ("kspec", "kspec-layers"),
        ("wiredump.readers", "readers-layers"),
    ],
)
def test_the_tables_have_the_layers_of_the_contracts(package: str, contract: str) -> None:
    table = re.search(rf"^\| {package} \| Purpose \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, re.M)
    assert table
    shown = [re.split(r" (?<!\\)\| ", row[2:])[0] for row in table[1].splitlines()]
    assert shown == layers_of(contract)
