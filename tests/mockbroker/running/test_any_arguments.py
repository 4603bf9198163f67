"""Python methods of operations take anything, and refuse it by name: an unchecked value would fail
somewhere inside, or be found by a client."""

from __future__ import annotations

import inspect
import random
from typing import Any

import pytest

from kproto.errors import UnknownNameError
from kproto.near_names import did_you_mean
from mockbroker import MockCluster
from mockbroker.errors import ClusterError, FaultError
from mockbroker.options import ClusterOptions
from mockbroker.simulation.operations import OPERATIONS
from tests.support.full import quickly_drawn
from tests.support.seeds import seed

_ODD: list[Any] = [
    None, True, -1, 0, 1, 10**30, 1.5, float("nan"), float("inf"), "", "x", "1", "foo-0", "foo",
    "foo-9", "1s", "-1s", "1e400s", "\0", "\ud800", "é", "a" * 70_000, "latest", b"", b"x", (),
    ("foo", 0), ("foo", "0"), [], ["x"], [1], {}, {"a": 1}, {1: 1}, {"a": ["foo-0"]}, {"a": [1]},
    {"key": "\ud800"}, {"headers": [["\ud800", None]]}, object(), object,
]  # fmt: skip
_CALLS = 30


@pytest.mark.parametrize("name", OPERATIONS)
async def test_any_values(name: str) -> None:
    operation = OPERATIONS[name]
    drawn = random.Random(f"{seed()} {name}")
    async with MockCluster(3, topics=["foo:2:3"]) as cluster:
        for _ in range(_CALLS):
            values = [drawn.choice(_ODD) for _ in operation.arguments]
            try:
                result = getattr(cluster, operation.method)(*values)
                if inspect.iscoroutine(result):
                    await result
            except (ClusterError, UnknownNameError):
                pass
            except Exception as error:
                pytest.fail(f"{operation.method}(*{values!r:.300}): {error!r}")


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda mock: mock.leave_isr(("foo", "0"), 3), '"partition" must be a string such as'),
        (lambda mock: mock.append("foo-0", 3.5), '"records" must be a string, not 3.5'),
        (lambda mock: mock.append("foo-0", "\ud800"), "value has a lone surrogate"),
        (
            lambda mock: mock.throttle_client("c", None),
            '"milliseconds" must be an integer, not None',
        ),
        (lambda mock: mock.set_target_assignment("g", {"m": 1}), "must have lists of partitions"),
    ],
)
def test_what_is_wrong_is_named(call: Any, problem: str) -> None:
    with pytest.raises(ClusterError, match=problem):
        call(MockCluster(3, topics=["foo:2:3"]))


def test_records_are_written_as_json_is() -> None:
    mock = MockCluster(1, topics=["foo:1:1"])
    mock.append("foo-0", {"key": "k", "value": "v"})
    assert [(each.key, each.value) for each in mock.records("foo")] == [(b"k", b"v")]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"api": "Prodcue", "error": 6}, "did you mean PRODUCE?"),
        ({"api": "Produce", "error": "NOT_LEADER"}, "did you mean NOT_LEADER_OR_FOLLOWER?"),
        # Names of before 1.0 and 2.6, which other clients still print.
        ({"error": "NOT_LEADER_FOR_PARTITION"}, "did you mean NOT_LEADER_OR_FOLLOWER?"),
        ({"error": "GROUP_LOAD_IN_PROGRESS"}, "did you mean COORDINATOR_LOAD_IN_PROGRESS?"),
        ({"error": "xyz"}, "use a name such as"),
        ({"erorr": 6}, "did you mean error"),
        ({"disconnect": "befor"}, "'befor' is none of before, after, answered"),
    ],
)
def test_rules_that_name_something_else(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(FaultError) as raised:
        MockCluster(1).fault(**rule)
    assert problem in str(raised.value)


@pytest.mark.slow
def test_every_misspelt_name_is_suggested() -> None:
    """One letter missing, doubled or swapped, in each operation's name."""
    for name in quickly_drawn("misspelt names", list(OPERATIONS), 12):
        for at in range(1, len(name) - 1):
            for spelt in (
                name[:at] + name[at + 1 :],
                name[:at] + name[at] + name[at:],
                name[: at - 1] + name[at] + name[at - 1] + name[at + 1 :],
            ):
                assert name in did_you_mean(spelt, OPERATIONS, most=4), spelt


def test_any_options() -> None:
    drawn = random.Random(f"{seed()} options")
    names = list(ClusterOptions.__dataclass_fields__)
    for _ in range(600):
        options = {
            name: drawn.choice(_ODD) for name in drawn.sample(names, drawn.choice([1, 1, 2]))
        }
        try:
            MockCluster(**options)
        except (ClusterError, UnknownNameError):
            pass
        except Exception as error:
            pytest.fail(f"MockCluster(**{options!r:.300}): {error!r}")


def test_options_with_units() -> None:
    options = ClusterOptions(idle_timeout_ms="10s", log_bytes="1MiB", propagation_ms="0.5s")  # type: ignore[arg-type]
    assert (options.idle_timeout_ms, options.log_bytes) == (10_000, 1 << 20)
    assert options.propagation_ms == 500
