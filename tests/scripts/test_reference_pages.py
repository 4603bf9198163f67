"""The generated parts of the reference are what the code says."""

import inspect
import re
from typing import get_args

import pytest

from mockbroker.control.schemas import COMPONENTS
from mockbroker.faults import Fault
from mockbroker.faults.descriptions import MEMBERS
from mockbroker.profiles import all_profiles
from mockbroker.simulation.operations import OPERATIONS
from mockbroker.simulation.operations.simulated import Operations
from mockbroker.simulation.state import actions
from scripts.reference_pages import DOCS, PARTS, filled, main
from tests.mockbroker.simulated import simulated_cluster

PAGES = {path: path.read_text("utf-8") for path in DOCS.rglob("*.md")}


def test_every_part_is_in_one_page() -> None:
    marks = [
        name for text in PAGES.values() for name in re.findall(r"<!-- generated: (\S+) ", text)
    ]
    assert sorted(marks) == sorted(PARTS)


def test_no_table_is_committed() -> None:
    """Between the marks is a sentence that says where the reader of the source finds the table."""
    for path, text in PAGES.items():
        for name, shown in re.findall(r"<!-- generated: (\S+) -->\n(.*?)<!-- end of", text, re.S):
            assert "|" not in shown, (path, name)
            assert 0 < len(shown) < 400, (path, name)


def test_a_part_replaces_its_sentence_and_the_rest_is_kept() -> None:
    page = "before\n<!-- generated: commands -->\nSee it.\n<!-- end of commands -->\nafter\n"
    assert filled(page) == "before\n" + PARTS["commands"]() + "after\n"


def test_a_part_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["proposals"]) == 0
    assert capsys.readouterr().out == PARTS["proposals"]()
    assert main(["profile"]) == 2
    assert "proposals" in capsys.readouterr().err


def test_the_tables_have_every_profile_command_and_kind() -> None:
    for each in all_profiles():
        assert f"\n| `{each.name}`" in PARTS["profiles"]()
    assert re.findall(r"^\| `(\S+?)[ `]", PARTS["commands"](), re.M) == list(OPERATIONS)
    for kind in get_args(actions.Change):
        assert f"### {kind.__name__}\n\n" in PARTS["action-kinds"]()


def test_every_member_of_a_rule_is_described_once() -> None:
    described = [name for group in MEMBERS.values() for name in group]
    assert sorted(described) == sorted(Fault.__struct_fields__)
    members = COMPONENTS["Fault"]["properties"]
    assert all(each["description"].endswith(".") for each in members.values())


def test_every_kind_of_action_has_a_sentence_and_its_members() -> None:
    text = PARTS["action-kinds"]() + "\n### "
    for kind in get_args(actions.Change):
        section = text.partition(f"### {kind.__name__}\n\n")[2].partition("\n### ")[0]
        assert not section.startswith("|"), kind
        for name in inspect.signature(kind).parameters:
            assert f"| `{name}` | `" in section


@pytest.mark.parametrize("profile", ["zookeeper", "kraft"])
def test_entries_as_json_have_the_members_of_the_page(profile: str) -> None:
    cluster = simulated_cluster(4, topics=["foo=1,2,3"], reassignment=profile)
    cluster.reassignments.alter([("foo", [(0, [2, 3, 4])])])
    Operations(cluster).join_isr(("foo", 0), 4)
    text = PARTS["action-kinds"]() + "\n### "
    for action in cluster.log:
        entry = action.to_dict()
        section = text.partition(f"### {entry['kind']}\n")[2].partition("\n### ")[0]
        for name in entry.keys() - {"offset", "at_ms", "cause", "kind"}:
            assert f"| `{name}` |" in section
