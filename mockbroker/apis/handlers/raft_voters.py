"""AddRaftVoter (80) and RemoveRaftVoter (81, KIP-853): the voters of the metadata quorum.

Versions of AddRaftVoter: 1 says whether to wait until the new voters are committed. The mock does
not contact a new voter.
"""

from __future__ import annotations

from kproto.messages.add_raft_voter_request import AddRaftVoterRequest
from kproto.messages.add_raft_voter_response import AddRaftVoterResponse
from kproto.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kproto.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from mockbroker.apis.common.requirements import cluster_operation
from mockbroker.apis.registry import Call, register
from mockbroker.simulation.security.authorizer import AclOperation

__all__ = ["add_raft_voter", "remove_raft_voter"]


@register(80, "0-1", requires=(cluster_operation(AclOperation.ALTER),))
def add_raft_voter(call: Call) -> AddRaftVoterResponse:
    request: AddRaftVoterRequest = call.body
    code, text = call.cluster.quorum.add_voter(
        request.cluster_id,
        request.voter_id,
        request.voter_directory_id,
        [(each.name, each.host, each.port) for each in request.listeners],
    )
    return AddRaftVoterResponse(error_code=code, error_message=text)


@register(81, "0", requires=(cluster_operation(AclOperation.ALTER),))
def remove_raft_voter(call: Call) -> RemoveRaftVoterResponse:
    request: RemoveRaftVoterRequest = call.body
    code, text = call.cluster.quorum.remove_voter(
        request.cluster_id, request.voter_id, request.voter_directory_id
    )
    return RemoveRaftVoterResponse(error_code=code, error_message=text)
