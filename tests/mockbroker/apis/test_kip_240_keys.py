"""``mockbroker serve --kip-240-keys``: the proposal's api keys, as any user chooses them."""

import pytest

from kproto.client import Admin
from kproto.dialects import kip_240
from tests.mockbroker.control.test_command_line import run_here, serving


@pytest.mark.slow
@pytest.mark.requirement("A-22")
async def test_a_served_cluster_has_the_keys_it_was_given() -> None:
    options = ("--profile", "kip-240", "--kip-240-keys", "4000,3000", "--topic", "foo=1")
    with serving(*options) as (_, ready):
        async with Admin(
            ready["bootstrap"], dialect=kip_240(list_key=4000, describe_key=3000)
        ) as admin:
            await admin.alter_partition_reassignments({("foo", 0): [2]}).all()
            (found,) = await admin.list_reassignments().all()
            described = await admin.describe_reassignments([found]).get(found)
    assert described is not None
    assert described.new_assigned_brokers == [2]


@pytest.mark.requirement("A-22")
@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--kip-240-keys", "4000"], "use LIST,DESCRIBE, two API keys"),
        (["--kip-240-keys", "a,b"], "use LIST,DESCRIBE, two API keys"),
        (["--kip-240-keys", "3,4000"], "api key 3 is taken"),
        (["--kip-240-keys", "4000,4000"], "cannot be that of both"),
        (["--kip-240-keys", "4000,3000", "--dialect", "auto"], "kip-240, not auto"),
    ],
)
def test_keys_that_make_no_sense_are_bad_usage(words, reason, capsys):
    assert run_here(["serve", *words]) == 2
    assert reason in " ".join(capsys.readouterr().err.split())
