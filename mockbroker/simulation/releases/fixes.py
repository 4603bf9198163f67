"""The fixes of Kafka that clients notice: since when each release line has them, what changed, and
nothing else. Data only.

A profile has the fixes of its patch release. Users switch each of them, whatever the release. The
numbers are those of the first releases with the commit of the issue.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mockbroker.simulation.releases.release import Fix

__all__ = [
    "FIXES",
    "KAFKA_5793",
    "KAFKA_6773",
    "KAFKA_7190",
    "KAFKA_7298",
    "KAFKA_7610",
    "KAFKA_8386",
    "KAFKA_8875",
    "KAFKA_9038",
    "KAFKA_9329",
    "KAFKA_9600",
    "KAFKA_9644",
    "KAFKA_9656",
    "KAFKA_9666",
    "KAFKA_9752",
    "KAFKA_9801",
    "KAFKA_9885",
    "KAFKA_10033",
    "KAFKA_10284",
    "KAFKA_10312",
    "KAFKA_12330",
    "KAFKA_12778",
    "KAFKA_12890",
    "KAFKA_12996",
    "KAFKA_13636",
    "KAFKA_13661",
    "KAFKA_13767",
    "KAFKA_13837",
    "KAFKA_13863",
    "KAFKA_13899",
    "KAFKA_14009",
    "KAFKA_14351",
    "KAFKA_14358",
    "KAFKA_14372",
    "KAFKA_15243",
    "KAFKA_15583",
    "KAFKA_18202",
    "KAFKA_19233",
    "KAFKA_19367",
    "KAFKA_19431",
    "KAFKA_19975",
    "KAFKA_20601",
    "KAFKA_20662",
    "KAFKA_20899",
]

# ---- groups --------------------------------------------------------------------------------------

KAFKA_6773: Final = Fix(
    "KAFKA-6773",
    "DP-SYNC-01, DP-BEAT-01, DP-LEAVE-02, DP-OFFSET-20",
    since=(2, 0),
    says="SyncGroup, Heartbeat and LeaveGroup without a group id get INVALID_GROUP_ID instead of "
    "UNKNOWN_MEMBER_ID; DeleteGroups takes an empty id.",
)
KAFKA_7610: Final = Fix(
    "KAFKA-7610",
    "DP-GROUP-16",
    since=(2, 2),
    backports=((2, 1, 1),),
    says="A new member that waits in JoinGroup is removed after its session time-out of five "
    "minutes, so that members whose client has given up do not pile up.",
)
KAFKA_8386: Final = Fix(
    "KAFKA-8386",
    "DP-JOIN-06, DP-SYNC-01, DP-BEAT-02",
    since=(2, 3),
    says="JoinGroup, SyncGroup and Heartbeat in a group that is being removed get "
    "COORDINATOR_NOT_AVAILABLE instead of UNKNOWN_MEMBER_ID.",
)
KAFKA_9752: Final = Fix(
    "KAFKA-9752",
    "DP-GROUP-12",
    since=(2, 5),
    says="The session of a new member runs from its first generation on; before, from its first "
    "SyncGroup or Heartbeat on, so that a member that sends neither stays.",
)
KAFKA_9801: Final = Fix(
    "KAFKA-9801",
    "DP-JOIN-18",
    since=(2, 5),
    says="A static member that returns before the leader has assigned begins a rebalance; before, "
    "it is answered at once.",
)
KAFKA_9885: Final = Fix(
    "KAFKA-9885",
    "DP-JOIN-05",
    since=(2, 6),
    says="During a rebalance of a full group the members that join last are refused; before, any "
    "known member may join.",
)
KAFKA_10284: Final = Fix(
    "KAFKA-10284",
    "DP-JOIN-18, DP-JOIN-19",
    since=(2, 7),
    backports=((2, 6, 1),),
    says="A static member that returns with other protocols rebalances the group if its protocol "
    "changes, and its new id is stored; before, it is always answered at once.",
)
KAFKA_12890: Final = Fix(
    "KAFKA-12890",
    "DP-GROUP-10",
    since=(3, 0),
    backports=((2, 8, 1),),
    says="Members that have not synced within the rebalance time-out are removed; before, the "
    "group is stuck in CompletingRebalance.",
)
KAFKA_13636: Final = Fix(
    "KAFKA-13636",
    "DP-OFFSET-21",
    since=(3, 2),
    backports=((2, 8, 2), (3, 0, 1), (3, 1, 1)),
    says="Offsets of topics without subscribers expire only while the group is stable; before, "
    "during a rebalance as well.",
)
KAFKA_14009: Final = Fix(
    "KAFKA-14009",
    "DP-JOIN-14",
    since=(3, 4),
    backports=((3, 3, 2),),
    says="A member that joins again brings its session and rebalance time-outs; before, those of "
    "its first JoinGroup stay.",
)
KAFKA_19233: Final = Fix(
    "KAFKA-19233",
    "REL-25",
    since=(4, 2),
    says="A member of a consumer, share or streams group may join again with epoch 0; before, "
    "error 110.",
)
KAFKA_19431: Final = Fix(
    "KAFKA-19431",
    "DP-RECON-08",
    since=(4, 2),
    says="A member of a consumer group loses the partitions of topics that it no longer subscribes "
    "to in the same heartbeat; before, with the next target.",
)
KAFKA_20601: Final = Fix(
    "KAFKA-20601",
    "REL-26",
    since=(4, 4),
    says="A static member may return to a full consumer group; before, error 81.",
)

KAFKA_20662: Final = Fix(
    "KAFKA-20662",
    "DP-MIGRATE-03",
    since=(4, 4),
    backports=((4, 2, 2),),
    says="A member of the classic protocol whose subscription cannot be read does not fit the "
    "consumer group (23); before, error -1.",
)
KAFKA_20899: Final = Fix(
    "KAFKA-20899",
    "DP-STREAMS-18",
    since=(4, 4),
    backports=((4, 2, 2),),
    says="A standby task stays with any member that had it; before, not if the first of them is "
    "in a process that runs the task.",
)

# ---- produce and transactions --------------------------------------------------------------------

KAFKA_5793: Final = Fix(
    "KAFKA-5793",
    "DP-IDEM-05",
    since=(1, 0),
    says="A producer id that the log does not know gets UNKNOWN_PRODUCER_ID, until 2.4, instead of "
    "OUT_OF_ORDER_SEQUENCE_NUMBER.",
)
KAFKA_7298: Final = Fix(
    "KAFKA-7298",
    "DP-IDEM-08",
    since=(2, 1),
    backports=((2, 0, 1),),
    says="A producer of which the log has only a marker gets UNKNOWN_PRODUCER_ID, until 2.4, "
    "instead of OUT_OF_ORDER_SEQUENCE_NUMBER.",
)
KAFKA_7190: Final = Fix(
    "KAFKA-7190",
    "DP-IDEM-13",
    since=(2, 4),
    says="A producer is known until it expires; before, until its last batch leaves the log.",
)
KAFKA_18202: Final = Fix(
    "KAFKA-18202",
    "DP-IDEM-07",
    since=(4, 1),
    says="A producer of transactions of version 2 that the log does not know begins at sequence 0; "
    "before, any sequence is taken.",
)
KAFKA_19367: Final = Fix(
    "KAFKA-19367",
    "DP-TXN-05, DP-TXN-18",
    since=(4, 1),
    backports=((4, 0, 1),),
    says="The abort of an open transaction of version 2, by InitProducerId or by time, raises the "
    "producer's epoch once; before, twice.",
)

KAFKA_9600: Final = Fix(
    "KAFKA-9600",
    "DP-END-01, DP-END-05",
    since=(2, 6),
    says="EndTxn with a newer epoch than the coordinator's is refused as fenced and changes "
    "nothing; before, it is refused after the end is written, and no markers follow.",
)
KAFKA_9656: Final = Fix(
    "KAFKA-9656",
    "DP-TXNOFF-01",
    since=(2, 6),
    says="TxnOffsetCommit 0 and 1 get COORDINATOR_NOT_AVAILABLE while the coordinator loads, "
    "instead of COORDINATOR_LOAD_IN_PROGRESS, which clients of that time do not expect.",
)
KAFKA_9666: Final = Fix(
    "KAFKA-9666",
    "DP-TXN-05",
    since=(2, 6),
    says="InitProducerId that is repeated because its fence could not be written raises the epoch "
    "once; before, at each attempt.",
)

# ---- fetching ------------------------------------------------------------------------------------

KAFKA_12330: Final = Fix(
    "KAFKA-12330",
    "DP-FETCH-09",
    since=(3, 0),
    says="In a fetch session only partitions with records go to the end of the order; before, "
    "those without starve others when answers are full.",
)
KAFKA_12996: Final = Fix(
    "KAFKA-12996",
    "DP-FETCH-16",
    since=(3, 0),
    backports=((2, 7, 2), (2, 8, 1)),
    says="A fetch below the start of the log fails with OFFSET_OUT_OF_RANGE even if its last "
    "fetched epoch diverges; before, it gets the diverging epoch.",
)
KAFKA_13767: Final = Fix(
    "KAFKA-13767",
    "REL-27",
    since=(3, 2),
    says="A fetch is answered at once if a replica is preferred for reading; before, when its time "
    "is up.",
)
KAFKA_13837: Final = Fix(
    "KAFKA-13837",
    "DP-FETCH-23",
    since=(3, 3),
    says="A fetch of a follower that is not a replica fails with UNKNOWN_LEADER_EPOCH or "
    "NOT_LEADER_OR_FOLLOWER; before, it succeeds without records.",
)
KAFKA_14372: Final = Fix(
    "KAFKA-14372",
    "REL-24",
    since=(3, 4),
    backports=((3, 3, 2),),
    says="Only replicas in the ISR are preferred for reading.",
)
KAFKA_15583: Final = Fix(
    "KAFKA-15583",
    "DP-LOG-07, DP-LOG-08",
    since=(3, 7),
    says="The high watermark stops while the ISR is smaller than min.insync.replicas; before, "
    "records with acks=1 are readable at once.",
)

# ---- administration ------------------------------------------------------------------------------

KAFKA_8875: Final = Fix(
    "KAFKA-8875",
    "REL-49",
    since=(2, 4),
    backports=((2, 3, 1),),
    says="ZooKeeper: CreateTopics says that a topic exists before it checks replication factor "
    "and counts.",
)
KAFKA_9038: Final = Fix(
    "KAFKA-9038",
    "REL-50",
    since=(2, 4),
    says="ZooKeeper: only the reassignment of a topic keeps CreatePartitions from adding to it; "
    "before, any reassignment does.",
)
KAFKA_9329: Final = Fix(
    "KAFKA-9329",
    "K455-23",
    since=(2, 5),
    says="ZooKeeper: AlterPartitionReassignments explains why a list of replicas is invalid.",
)
KAFKA_9644: Final = Fix(
    "KAFKA-9644",
    "REL-17",
    since=(2, 6),
    says="ZooKeeper: APPEND and SUBTRACT on a list without a value of its own start from its "
    "default; before, error -1.",
)
KAFKA_10033: Final = Fix(
    "KAFKA-10033",
    "REL-19",
    since=(2, 7),
    says="ZooKeeper: IncrementalAlterConfigs of an unknown topic fails with "
    "UNKNOWN_TOPIC_OR_PARTITION; before, with UNKNOWN_SERVER_ERROR.",
)
KAFKA_10312: Final = Fix(
    "KAFKA-10312",
    "REL-03",
    since=(2, 7),
    says="Metadata 6 and later says LEADER_NOT_AVAILABLE of a partition without a leader; before, "
    "since 2.4, LISTENER_NOT_FOUND.",
)
KAFKA_12778: Final = Fix(
    "KAFKA-12778",
    "A-56",
    since=(3, 0),
    says="KRaft: an administrative request whose time-out is 0 fails with REQUEST_TIMED_OUT; "
    "before, it is carried out.",
)
KAFKA_13661: Final = Fix(
    "KAFKA-13661",
    "REL-51",
    since=(3, 2),
    backports=((3, 1, 1),),
    says="KRaft: CreatePartitions needs Alter on the topic; before, Create on the cluster is "
    "enough.",
)
KAFKA_13863: Final = Fix(
    "KAFKA-13863",
    "REL-52",
    since=(3, 3),
    says="CreateTopics with a null config value fails with INVALID_CONFIG; before, with "
    "INVALID_REQUEST, and KRaft takes it for an absent config.",
)
KAFKA_13899: Final = Fix(
    "KAFKA-13899",
    "REL-16",
    since=(3, 3),
    says="ZooKeeper: IncrementalAlterConfigs with a wrong value fails with INVALID_CONFIG instead "
    "of INVALID_REQUEST.",
)
KAFKA_14351: Final = Fix(
    "KAFKA-14351",
    "QUOTA-20",
    since=(3, 5),
    says="KRaft: controller_mutation_rate limits the creation and deletion of topics; before, it "
    "has no effect.",
)
KAFKA_14358: Final = Fix(
    "KAFKA-14358",
    "REL-53",
    since=(3, 4),
    backports=((3, 3, 2),),
    says="CreateTopics refuses __cluster_metadata; before, it creates an ordinary topic.",
)
KAFKA_15243: Final = Fix(
    "KAFKA-15243",
    "REL-54",
    since=(3, 6),
    backports=((3, 5, 2),),
    says="ZooKeeper: DescribeUserScramCredentials of all users shows their names; before, in "
    "percent-encoding.",
)
KAFKA_19975: Final = Fix(
    "KAFKA-19975",
    "A-57",
    since=(4, 3),
    says="KRaft: a reassignment completes once every added replica is in sync; before, a replica "
    "that stays and is out of sync blocks it.",
)

FIXES: Final[Mapping[str, Fix]] = {
    each.issue: each
    for each in sorted(
        (value for value in list(globals().values()) if isinstance(value, Fix)),
        key=lambda fix: fix.number,
    )
}
"""All of them by issue, in the order of their numbers."""
