"""docs/action-log.md is what the types of the action log say."""

from __future__ import annotations

from typing import get_args

from mockbroker import Cluster
from mockbroker.state import actions
from scripts.action_log_page import PAGE, page


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m scripts.action_log_page"


def test_every_kind_has_its_members_and_a_sentence() -> None:
    text = page()
    for kind in get_args(actions.Change):
        section = text.partition(f"### {kind.__name__}\n\n")[2].partition("\n### ")[0]
        assert not section.startswith("|"), kind
        for name in kind.__dataclass_fields__:
            assert f"| `{name}` | `" in section


def test_entries_as_json_have_the_members_of_the_page() -> None:
    cluster = Cluster(4, topics=["foo=1,2,3"], reassignment="zookeeper")
    cluster.alter_partition_reassignments([("foo", [(0, [2, 3, 4])])])
    cluster.join_isr(("foo", 0), 4)
    text = page()
    for action in cluster.log:
        told = action.to_dict()
        section = text.partition(f"### {told['kind']}\n")[2].partition("\n### ")[0]
        for name in told.keys() - {"offset", "at_ms", "cause", "kind"}:
            assert f"| `{name}` |" in section
