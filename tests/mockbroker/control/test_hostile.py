"""The control port answers any body as documented, never with an internal error."""

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mockbroker.control import ROUTES
from mockbroker.control.options import CLUSTER_OPTIONS
from mockbroker.control.routes import Route
from tests.mockbroker.control.test_control import controlled

POSTED = [route for route in ROUTES if route.method == "POST" and "{" not in route.path]
ELSEWHERE = {"host", "zookeeper", "external_brokers", "port"}
"""Options that connect to other machines."""

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 5)
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["foo-0", "foo:1:1", "500ms", "wall", "kafka-2.4", "/admin", "4=0-2", "auto"])
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def bodies(route: Route) -> st.SearchStrategy[Any]:
    """Objects with the right members and arbitrary values, and arbitrary JSON."""
    members = route.body if isinstance(route.body, tuple) else ()
    names = [each.name for each in members if each.name not in ELSEWHERE]
    some = st.fixed_dictionaries(
        {each.name: values for each in members if each.required},
        optional={each.name: values for each in CLUSTER_OPTIONS if each.name in names},
    )
    return some | values


requests = st.sampled_from(POSTED).flatmap(lambda route: st.tuples(st.just(route), bodies(route)))


@given(st.lists(requests, min_size=1, max_size=6))
def test_no_body_causes_an_internal_error(asked: list[tuple[Route, Any]]) -> None:
    async def ask() -> None:
        async with controlled(clock="manual", profile="kafka-2.4") as (_, client):
            for route, body in asked:
                status, answer = await client.post(route.path, json=body)
                allowed = (route.status, 400, 413, *route.refusals)
                assert status in allowed, (route.path, body, answer)
                if status != route.status:
                    assert list(answer) == ["error"]
                    assert "\n" not in answer["error"]
                assert (await client.get("/state"))[0] == 200
                json.dumps((await client.get("/log"))[1])

    asyncio.run(ask())
