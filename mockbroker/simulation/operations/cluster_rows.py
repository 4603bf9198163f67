"""The commands on brokers, topics, replicas, metadata, elections, time and znodes."""

from __future__ import annotations

from typing import Final

from mockbroker.simulation.operations.arguments import (
    ADDRESS,
    BROKER,
    CHANGES,
    COUNT,
    DURATION,
    LEVEL,
    LOG_DIRECTORY,
    PARTITION,
    PATH,
    TOPIC,
    WORD,
    ZNODE_TEXT,
    ZNODE_TEXT_OR_NULL,
    Argument,
)
from mockbroker.simulation.operations.command import Command

__all__ = ["CLUSTER_ROWS"]

_TOPIC_NAME: Final = Argument("topic", WORD, "The name of a topic.")

CLUSTER_ROWS: Final = (
    Command(
        "join-isr",
        "Make a replica catch up and join the ISR.",
        lambda on, given: on.cluster.join_isr(given["partition"], given["broker"]),
        (PARTITION, BROKER),
    ),
    Command(
        "leave-isr",
        "Make a follower fall behind and leave the ISR.",
        lambda on, given: on.cluster.leave_isr(given["partition"], given["broker"]),
        (PARTITION, BROKER),
    ),
    Command(
        "create-topic",
        "Create a topic.",
        lambda on, given: on.cluster.add_topic(given["topic"]),
        (TOPIC,),
        details="TOPIC is foo:2:3 for two partitions with three replicas each, or "
        "foo=1,2,3/2,3,4, which lists the replicas of each partition.",
    ),
    Command(
        "delete-topic",
        "Delete a topic.",
        lambda on, given: on.cluster.topics.remove(given["topic"]),
        (_TOPIC_NAME,),
    ),
    Command(
        "add-partitions",
        "Add partitions to a topic.",
        lambda on, given: on.cluster.topics.extend(given["topic"], given["count"]),
        (_TOPIC_NAME, Argument("count", COUNT, "The new total number of partitions.")),
    ),
    Command(
        "failover",
        "Make another live broker the controller.",
        lambda on, given: on.cluster.failover(given["broker"]),
        (BROKER,),
    ),
    Command(
        "stop-broker",
        "Stop a broker and close its connections.",
        lambda on, given: on.stop_broker(given["broker"]),
        (BROKER,),
        details="The broker leaves its ISRs, and its partitions get other leaders. Its port "
        "refuses connections until `start-broker`.",
    ),
    Command(
        "start-broker",
        "Restart a stopped broker on the same port.",
        lambda on, given: on.start_broker(given["broker"]),
        (BROKER,),
    ),
    Command(
        "fail-log-dir",
        "Fail a log directory of a broker.",
        lambda on, given: on.fail_log_dir(given["broker"], given["directory"]),
        (BROKER, LOG_DIRECTORY),
        details="Requests for the replicas in it have error 56, and DescribeLogDirs shows the "
        "error. The broker reports the failure to the controller: leaders move, ISRs shrink, and "
        "Metadata lists the replicas as offline. Brokers in KRaft mode report it since Kafka 3.7; "
        "before, leaders stay. Before Kafka 1.0 the broker stops. A broker lives on when all its "
        "directories have failed, where Kafka's halts; use `stop-broker` for that.",
    ),
    Command(
        "mend-log-dir",
        "Repair a log directory and restart its broker.",
        lambda on, given: on.mend_log_dir(given["broker"], given["directory"]),
        (BROKER, LOG_DIRECTORY),
        details="A broker takes a directory back only when it starts. Its replicas join their "
        "ISRs again by `join-isr` or auto-progress.",
    ),
    Command(
        "close-listener",
        "Close the listener of a live broker.",
        lambda on, given: on.close_listener(given["broker"]),
        (BROKER,),
        details="The broker's connections break and its port refuses new ones, but the cluster "
        "still considers the broker live.",
    ),
    Command(
        "open-listener",
        "Reopen a broker's listener on the same port.",
        lambda on, given: on.open_listener(given["broker"]),
        (BROKER,),
    ),
    Command(
        "set-level",
        "Upgrade or downgrade a broker's software.",
        lambda on, given: on.set_level(given["broker"], given["level"]),
        (BROKER, LEVEL),
        details="LEVEL is a release such as kafka-2.3; or the API versions that differ from the "
        "other brokers', such as 4=0-2,45=off; or `cluster`, which makes the broker like the "
        "others. The broker's connections break. The controller resends nothing to the broker. If "
        "the broker is the controller, it is elected again.",
    ),
    Command(
        "advertise",
        "Change the address of a broker in Metadata.",
        lambda on, given: on.advertise(given["broker"], given["address"]),
        (BROKER, Argument("address", ADDRESS, "Where clients reach the broker.")),
        details="The broker keeps listening where it does. This is for clients that reach it "
        "through a forwarded port that is known only once the cluster runs, such as a port that a "
        "container publishes.",
    ),
    Command(
        "throttle-client",
        "Throttle every response to a client.",
        lambda on, given: on.cluster.throttle_client(given["client_id"], given["duration"]),
        (Argument("client_id", WORD, "The client's id."), DURATION),
        details="As a quota does (KIP-219): each response has this throttle time, and the broker "
        "mutes the connection for that long; a fetch gets no records. Before Kafka 2.0 the "
        "responses are delayed by it. 0ms ends it.",
    ),
    Command(
        "hold-metadata",
        "Freeze the metadata that a broker serves.",
        lambda on, given: on.cluster.hold_metadata(given["broker"]),
        (BROKER,),
    ),
    Command(
        "release-metadata",
        "Bring a broker's frozen metadata up to date.",
        lambda on, given: on.cluster.release_metadata(given["broker"]),
        (BROKER,),
    ),
    Command(
        "advance",
        "Advance the simulated clock.",
        lambda on, given: on.advance(given["duration"]),
        (DURATION,),
        details="Whatever is due until then happens at once, in order. DURATION has a unit, as "
        "in 500ms, 2s or 1m.",
    ),
    Command(
        "propagation",
        "Delay the metadata of every broker.",
        lambda on, given: on.cluster.set_propagation(given["duration"]),
        (DURATION,),
        details="From now on every change reaches the brokers this much later. DURATION has a "
        "unit, as in 200ms; 0ms removes the delay.",
    ),
    Command(
        "hold-elections",
        "Stop processing the queue of elections.",
        lambda on, _: on.cluster.hold_elections(),
        details="Elections wait in the controller's queue, and their callers with them (ZooKeeper "
        "mode, KIP-183).",
    ),
    Command(
        "release-elections",
        "Process the queue of elections again.",
        lambda on, _: on.cluster.release_elections(),
    ),
    Command(
        "write-znode",
        "Create or change a znode.",
        lambda on, given: on.cluster.write_znode(given["path"], given["text"]),
        (PATH, Argument("text", ZNODE_TEXT_OR_NULL, "The content; null deletes the znode.")),
    ),
    Command(
        "append-znode",
        "Create a sequential znode.",
        lambda on, given: on.cluster.append_znode(given["path"], given["text"]),
        (PATH, Argument("text", ZNODE_TEXT, "The content.")),
        details="ZooKeeper appends ten digits to PATH.",
    ),
    Command(
        "delete-znode",
        "Delete a znode.",
        lambda on, given: on.cluster.write_znode(given["path"], None),
        (PATH,),
    ),
    Command(
        "resign-controller",
        "Leave the cluster without a controller.",
        lambda on, _: on.cluster.resign_controller(),
        details="There is none until `failover`, or until a broker starts (ZooKeeper mode).",
    ),
    Command(
        "expire-session",
        "Expire a broker's ZooKeeper session.",
        lambda on, given: on.cluster.expire_session(given["broker"]),
        (BROKER,),
        details="The broker registers again. If it was the controller, another broker becomes the "
        "controller.",
    ),
    Command(
        "kill-controller-after",
        "Kill the controller during an operation.",
        lambda on, given: on.cluster.kill_controller_after(given["changes"]),
        (CHANGES,),
        details="The controller dies once it has made CHANGES more changes; another broker takes "
        "over from what is on record.",
    ),
)
