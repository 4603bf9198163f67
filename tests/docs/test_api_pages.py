"""The pages of the Python API have every public package, and every name on them is documented."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.docs.shell import ROOT

PAGES = ROOT / "docs/reference/api"
DIRECTIVE = re.compile(r"^::: ([\w.]+)\n((?:    .*\n)*)", re.M)


def documented() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every module on the pages, with its options."""
    for page in sorted(PAGES.glob("*.md")):
        for module, options in DIRECTIVE.findall(page.read_text()):
            yield module, (yaml.safe_load(options) or {}).get("options", {})


MODULES = dict(documented())


def lacks_text(value: object) -> bool:
    """Dataclasses and named tuples get a signature for a docstring."""
    text = inspect.getdoc(value)
    return not text or (inspect.isclass(value) and text.startswith(f"{value.__name__}("))


@pytest.mark.parametrize("name", MODULES)
def test_every_class_and_function_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    options = MODULES[name]
    names = options.get("members", getattr(module, "__all__", []))
    missing = []
    for each in names:
        value = getattr(module, each)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if lacks_text(value):
            missing.append(each)
        if inspect.isclass(value) and not options.get("show_if_no_docstring"):
            missing += [
                f"{each}.{method}"
                for method, what in vars(value).items()
                if not method.startswith("_")
                if inspect.isfunction(what) or isinstance(what, property | classmethod)
                if lacks_text(getattr(value, method))
            ]
    assert not missing, ", ".join(missing)


@pytest.mark.parametrize("name", ["kproto", "mockbroker", "wiredump", "kspec"])
def test_each_distribution_package_has_a_page(name: str) -> None:
    assert any(module == name or module.startswith(f"{name}.") for module in MODULES)
    assert (PAGES / f"{name}.md").exists()
