"""Every state against every input, and walks through the tables."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.connection.states import (
    CLIENT_TRANSITIONS,
    SERVER_TRANSITIONS,
    ClientInput,
    ClientState,
    ServerInput,
    ServerState,
    StateMachine,
)
from kproto.errors import LocalProtocolError, RemoteProtocolError

Table = Mapping[Any, Mapping[Any, Any]]

SIDES: list[tuple[Table, type[Enum], type[Enum], Enum]] = [
    (CLIENT_TRANSITIONS, ClientState, ClientInput, ClientState.OPEN),
    (SERVER_TRANSITIONS, ServerState, ServerInput, ServerState.SASL_REQUIRED),
]

# Written down here a second time, on purpose: what a peer does, as against what we do.
PEERS_DOING = {
    "NEGOTIATION_ENDED", "HANDSHAKE_ACCEPTED", "HANDSHAKE_REFUSED", "RECEIVE_API_VERSIONS",
    "RECEIVE_HANDSHAKE", "RECEIVE_AUTHENTICATE", "RECEIVE_REQUEST", "RECEIVE_TOKEN",
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "state", "happened"),
    [
        pytest.param(table, state, happened, id=f"{states.__name__}-{state.name}-{happened.name}")
        for table, states, inputs, _ in SIDES
        for state in states
        for happened in inputs
    ],
)  # fmt: skip
def test_every_state_and_input(table: Table, state: Enum, happened: Enum) -> None:
    """An input moves to the state the table names, or blames the right side and moves nothing."""
    machine = StateMachine(table, state)
    following = table[state].get(happened)
    if following is not None:
        machine.advance(happened)
        assert machine.state is following
        return
    blamed = RemoteProtocolError if happened.name in PEERS_DOING else LocalProtocolError
    with pytest.raises(blamed) as caught:
        machine.advance(happened)
    assert machine.state is state
    assert str(caught.value).endswith(f"{happened.value} while {state.value}")


@pytest.mark.parametrize(("table", "states", "inputs", "start"), SIDES, ids=["client", "server"])
def test_the_tables_are_whole(table, states, inputs, start):
    assert set(table) == set(states)
    assert {happened for row in table.values() for happened in row} == set(inputs)
    reached, edge = {start}, [start]
    while edge:
        for following in table[edge.pop()].values():
            if following not in reached:
                reached.add(following)
                edge.append(following)
    assert reached == set(states), "a state no walk leads to"
    closed = next(state for state in states if state.name == "CLOSED")
    assert all(row[inputs["CLOSE"]] is closed for row in table.values())
    assert set(table[closed].values()) == {closed}


@given(data=st.data())
def test_a_server_serves_nothing_before_sasl_is_complete(data: st.DataObject) -> None:
    """Any walk from SASL_REQUIRED: until COMPLETE_SASL was passed requests are illegal, or can
    only be refused."""
    machine = StateMachine(SERVER_TRANSITIONS, ServerState.SASL_REQUIRED)
    completed = False
    for _ in range(data.draw(st.integers(1, 30))):
        happened = data.draw(st.sampled_from(list(ServerInput)))
        try:
            machine.advance(happened)
        except (LocalProtocolError, RemoteProtocolError):
            continue
        completed = completed or happened is ServerInput.COMPLETE_SASL
        if happened is ServerInput.RECEIVE_REQUEST:
            assert completed or machine.state is ServerState.OUT_OF_TURN
