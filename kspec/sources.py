"""The documents that cases refer to, and where each can be read.

A case's ``source`` is text such as ``KIP-98, "Data Flow"; RFC 5802, section 5.1 (r)``: parts
separated by semicolons, each with a document, perhaps its headings or sections, and a note in
parentheses. ``sources_of`` resolves the parts by the tables below. Nothing here is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kproto.dialects import dialect
from kproto.journal import squash
from kspec.errors import KspecError

__all__ = ["KIPS", "Kip", "Source", "sources_of"]


@dataclass(frozen=True, slots=True)
class Source:
    """One document of a case, such as ``KIP-98``: the place in it, what of it is meant, its title
    and its address."""

    document: str
    place: str
    note: str
    title: str
    address: str

    def __str__(self) -> str:
        return f"{self.document}{self.detail}"

    @property
    def detail(self) -> str:
        """What follows the document's name."""
        place = f", {self.place}" if self.place else ""
        return f"{place} ({self.note})" if self.note else place


class Kip(NamedTuple):
    """A proposal: the title of its page, and the section that has the rule if a case names none.

    ``page`` is the page's number, where its title is not part of its address.
    """

    title: str
    section: str = "Proposed Changes"
    page: int | None = None


_WIKI: Final = "https://cwiki.apache.org/confluence"
_SITE: Final = "https://kafka.apache.org/43"
_GUIDE: Final = f"{_SITE}/design/protocol/"
_CLASSES: Final = {
    "KafkaConsumer": "clients/consumer",
    "KafkaProducer": "clients/producer",
    "KafkaShareConsumer": "clients/consumer",
    "Header": "common/header",
}
"""The packages of the classes whose documentation cases quote."""
_INTERFACES: Final = "Public Interfaces"

KIPS: Final[Mapping[int, Kip]] = {
    4: Kip("KIP-4 - Command line and centralized administrative operations", _INTERFACES),
    12: Kip("KIP-12 - Kafka Sasl/Kerberos and SSL implementation", page=51809888),
    13: Kip("KIP-13 - Quotas"),
    19: Kip("KIP-19 - Add a request timeout to NetworkClient"),
    31: Kip("KIP-31 - Move to relative offsets in compressed message sets"),
    32: Kip("KIP-32 - Add timestamps to Kafka message"),
    35: Kip("KIP-35 - Retrieving protocol version"),
    40: Kip("KIP-40: ListGroups and DescribeGroup", _INTERFACES),
    43: Kip("KIP-43: Kafka SASL enhancements"),
    54: Kip("KIP-54 - Sticky Partition Assignment Strategy"),
    57: Kip("KIP-57 - Interoperable LZ4 Framing"),
    62: Kip("KIP-62: Allow consumer to send heartbeats from a background thread"),
    74: Kip("KIP-74: Add Fetch Response Size Limit in Bytes"),
    78: Kip("KIP-78: Cluster Id"),
    79: Kip("KIP-79 - ListOffsetRequest/ListOffsetResponse v1", _INTERFACES, page=65868090),
    82: Kip("KIP-82 - Add Record Headers"),
    84: Kip("KIP-84: Support SASL SCRAM mechanisms"),
    88: Kip("KIP-88: OffsetFetch Protocol Update"),
    91: Kip("KIP-91 Provide Intuitive User Timeouts in The Producer"),
    98: Kip("KIP-98 - Exactly Once Delivery and Transactional Messaging"),
    101: Kip(
        "KIP-101 - Alter Replication Protocol to use Leader Epoch rather than High Watermark for "
        "Truncation"
    ),
    107: Kip("KIP-107: Add deleteRecordsBefore() API in AdminClient"),
    108: Kip("KIP-108: Create Topic Policy"),
    110: Kip("KIP-110: Add Codec for ZStandard Compression"),
    112: Kip("KIP-112: Handle disk failure for JBOD"),
    113: Kip("KIP-113: Support replicas movement between log directories", _INTERFACES),
    117: Kip("KIP-117: Add a public AdminClient API for Kafka admin operations", _INTERFACES),
    124: Kip("KIP-124 - Request rate quotas"),
    126: Kip("KIP-126 - Allow KafkaProducer to split and resend oversized batches", page=68715855),
    133: Kip("KIP-133: Describe and Alter Configs Admin APIs", _INTERFACES),
    140: Kip("KIP-140: Add administrative RPCs for adding, deleting, and listing ACLs"),
    144: Kip("KIP-144: Exponential backoff for broker reconnect attempts"),
    152: Kip("KIP-152 - Improve diagnostics for SASL authentication failures"),
    183: Kip("KIP-183 - Change PreferredReplicaLeaderElectionCommand to use AdminClient"),
    185: Kip(
        "KIP-185: Make exactly once in order delivery per partition the default Producer setting"
    ),
    192: Kip("KIP-192 : Provide cleaner semantics when idempotence is enabled"),
    195: Kip("KIP-195: AdminClient.createPartitions"),
    204: Kip("KIP-204 : Adding records deletion operation to the new Admin Client API"),
    207: Kip(
        "KIP-207: Offsets returned by ListOffsetsResponse should be monotonically increasing even "
        "during a partition leader change"
    ),
    219: Kip("KIP-219 - Improve quota communication"),
    222: Kip("KIP-222 - Add Consumer Group operations to Admin API", _INTERFACES),
    226: Kip("KIP-226 - Dynamic Broker Configuration"),
    227: Kip("KIP-227: Introduce Incremental FetchRequests to Increase Partition Scalability"),
    229: Kip("KIP-229: DeleteGroups API"),
    255: Kip("KIP-255: OAuth Authentication via SASL/OAUTHBEARER", page=75968876),
    266: Kip("KIP-266: Fix consumer indefinite blocking behavior"),
    289: Kip("KIP-289: Improve the default group id behavior in KafkaConsumer"),
    290: Kip("KIP-290: Support for Prefixed ACLs", _INTERFACES),
    294: Kip("KIP-294 - Enable TLS hostname verification by default"),
    302: Kip("KIP-302 - Enable Kafka clients to use all DNS resolved IP addresses"),
    320: Kip("KIP-320: Allow fetchers to detect and handle log truncation"),
    339: Kip("KIP-339: Create a new IncrementalAlterConfigs API", _INTERFACES),
    345: Kip("KIP-345: Introduce static membership protocol to reduce consumer rebalances"),
    360: Kip("KIP-360: Improve reliability of idempotent/transactional producer", page=89068820),
    361: Kip("KIP-361: Add Consumer Configuration to Disable Auto Topic Creation"),
    368: Kip("KIP-368: Allow SASL Connections to Periodically Re-Authenticate"),
    389: Kip("KIP-389: Introduce a configurable consumer group size limit", page=89070828),
    392: Kip("KIP-392: Allow consumers to fetch from closest replica"),
    394: Kip("KIP-394: Require member.id for initial join group request"),
    396: Kip("KIP-396: Add Commit/List Offsets Operations to AdminClient", page=97551484),
    429: Kip("KIP-429: Kafka Consumer Incremental Rebalance Protocol"),
    430: Kip("KIP-430 - Return Authorized Operations in Describe Responses"),
    447: Kip("KIP-447: Producer scalability for exactly once semantics"),
    455: Kip("KIP-455: Create an Administrative API for Replica Reassignment", _INTERFACES),
    460: Kip("KIP-460: Admin Leader Election RPC", _INTERFACES),
    464: Kip("KIP-464: Defaults for AdminClient#createTopic", page=113708722),
    467: Kip(
        "KIP-467: Augment ProduceResponse error messaging for specific culprit records", _INTERFACES
    ),
    480: Kip("KIP-480: Sticky Partitioner"),
    482: Kip("KIP-482: The Kafka Protocol should Support Optional Tagged Fields"),
    496: Kip("KIP-496: Administrative API to delete consumer offsets"),
    498: Kip(
        "KIP-498: Add client-side configuration for maximum response size to protect against OOM"
    ),
    511: Kip("KIP-511: Collect and Expose Client's Name and Version in the Brokers"),
    516: Kip("KIP-516: Topic Identifiers"),
    518: Kip("KIP-518: Allow listing consumer groups per state"),
    525: Kip("KIP-525 - Return topic metadata and configs in CreateTopics response"),
    526: Kip("KIP-526: Reduce Producer Metadata Lookups for Large Number of Topics"),
    533: Kip("KIP-533: Add default api timeout to AdminClient"),
    546: Kip("KIP-546: Add Client Quota APIs to the Admin Client"),
    554: Kip("KIP-554: Add Broker-side SCRAM Config API"),
    559: Kip("KIP-559: Make the Kafka Protocol Friendlier with L7 Proxies"),
    580: Kip("KIP-580: Exponential Backoff for Kafka Clients"),
    584: Kip("KIP-584: Versioning scheme for features"),
    588: Kip("KIP-588: Allow producers to recover gracefully from transaction timeouts"),
    599: Kip("KIP-599: Throttle Create Topic, Create Partition and Delete Topic Operations"),
    601: Kip("KIP-601: Configurable socket connection timeout in NetworkClient"),
    602: Kip("KIP-602: Change default value for client.dns.lookup"),
    651: Kip("KIP-651 - Support PEM format for SSL certificates and private key"),
    654: Kip(
        "KIP-654: Aborted transaction with non-flushed data should throw a non-fatal exception"
    ),
    664: Kip("KIP-664: Provide tooling to detect and abort hanging transactions"),
    679: Kip("KIP-679: Producer will enable the strongest delivery guarantee by default"),
    699: Kip("KIP-699: Update FindCoordinator to resolve multiple Coordinators at a time"),
    700: Kip("KIP-700: Add Describe Cluster API", _INTERFACES),
    709: Kip("KIP-709: Extend OffsetFetch requests to accept multiple group ids", page=173084258),
    714: Kip("KIP-714: Client metrics and observability"),
    734: Kip(
        "KIP-734: Improve AdminClient.listOffsets to return timestamp and offset for the record "
        "with the largest timestamp"
    ),
    735: Kip("KIP-735: Increase default consumer session timeout"),
    792: Kip('KIP-792: Add "generation" field into consumer protocol', page=191336614),
    794: Kip("KIP-794: Strictly Uniform Sticky Partitioner"),
    800: Kip("KIP-800: Add reason to JoinGroupRequest and LeaveGroupRequest"),
    814: Kip("KIP-814: Static membership protocol should let the leader skip assignment"),
    848: Kip("KIP-848: The Next Generation of the Consumer Rebalance Protocol"),
    851: Kip("KIP-851: Add requireStable flag into ListConsumerGroupOffsetsOptions"),
    860: Kip(
        "KIP-860: Add client-provided option to guard against replication factor change during "
        "partition reassignments"
    ),
    881: Kip("KIP-881: Rack-aware Partition Assignment for Kafka Consumers"),
    890: Kip("KIP-890: Transactions Server-Side Defense"),
    896: Kip("KIP-896: Remove old client protocol API versions in Kafka 4.0"),
    899: Kip("KIP-899: Allow producer and consumer clients to rebootstrap"),
    932: Kip("KIP-932: Queues for Kafka"),
    951: Kip("KIP-951: Leader discovery optimisations for the client"),
    966: Kip("KIP-966: Eligible Leader Replicas"),
    1000: Kip("KIP-1000: List Client Metrics Configuration Resources"),
    1043: Kip("KIP-1043: Administration of groups"),
    1071: Kip("KIP-1071: Streams Rebalance Protocol"),
    1073: Kip("KIP-1073: Return fenced brokers in DescribeCluster response"),
    1076: Kip("KIP-1076:  Metrics for client applications KIP-714 extension"),
    1082: Kip("KIP-1082: Require Client-Generated IDs over the ConsumerGroupHeartbeat RPC"),
    1102: Kip("KIP-1102: Enable clients to rebootstrap based on timeout or error code"),
    1142: Kip("KIP-1142: Allow to list non-existent group which has dynamic config"),
    1152: Kip("KIP-1152: Add transactional ID pattern filter to ListTransactions API"),
}

_HEADINGS: Final[Mapping[str, str]] = {
    heading.casefold(): address
    for heading, address in (
        ("Network", f"{_GUIDE}#network"),
        ("Partitioning and bootstrapping", f"{_GUIDE}#partitioning-and-bootstrapping"),
        ("Batching", f"{_GUIDE}#batching"),
        ("Compatibility", f"{_GUIDE}#compatibility"),
        ("Retrieving Supported API versions", f"{_GUIDE}#retrieving-supported-api-versions"),
        ("SASL Authentication Sequence", f"{_GUIDE}#sasl-authentication-sequence"),
        ("Protocol Primitive Types", f"{_GUIDE}#protocol-primitive-types"),
        (
            "Common Request and Response Structure",
            f"{_GUIDE}#common-request-and-response-structure",
        ),
        ("Request and Response Headers", f"{_GUIDE}#request-and-response-headers"),
        ("Error Codes", f"{_GUIDE}#error-codes"),
        ("Api Keys", f"{_GUIDE}#api-keys"),
        ("Record Batch", "https://kafka.apache.org/43/implementation/message-format/#record-batch"),
        (
            "Control Batches",
            "https://kafka.apache.org/43/implementation/message-format/#control-batches",
        ),
        (
            "Record Header",
            "https://kafka.apache.org/43/implementation/message-format/#record-header",
        ),
    )
}
"""Headings of the protocol guide, in lower case. An API's is its name, such as `Metadata API`."""

_PART: Final = re.compile(
    r"(?P<document>KIP-\d+|protocol guide|RFC \d+|KAFKA-\d+|CVE-\d+-\d+"
    r"|\w+ javadoc|(?:consumer|producer) configs)"
    r"(?:, (?P<place>\"[^\"]+\"(?: and \"[^\"]+\")*|sections? [\d.]+(?:(?:, | and )[\d.]+)*))?"
    r"(?: \((?P<note>.*)\))?"
)
_QUOTED: Final = re.compile(r'"([^"]+)"')
_SECTION: Final = re.compile(r"[\d.]*\d")


def sources_of(text: str) -> tuple[Source, ...]:
    """Return the documents of a case's source. Raises KspecError if one is not in the tables."""
    return tuple(_source(part.strip()) for part in _split(text))


def _split(text: str) -> list[str]:
    """Split at the semicolons that are not within parentheses."""
    return re.split(r";(?![^(]*\))", text)


def _source(part: str) -> Source:
    found = _PART.fullmatch(part)
    if found is None:
        raise KspecError(
            f'{part!r} is not DOCUMENT, "HEADING" or section N (NOTE), with a KIP, KAFKA-n issue, '
            "CVE, RFC, CLASS javadoc, consumer or producer configs or the protocol guide as its "
            "document"
        )
    document, place, note = found["document"], found["place"] or "", found["note"] or ""
    if document.startswith("KIP-"):
        return _proposal(document, place, note)
    if document == "protocol guide":
        return Source(document, place, note, "Kafka protocol guide", _heading(part, place))
    if document.startswith("RFC "):
        number = document.removeprefix("RFC ")
        anchor = _SECTION.search(place)
        address = f"https://www.rfc-editor.org/rfc/rfc{number}"
        address += f"#section-{anchor[0]}" if anchor else ""
    elif document.endswith(" javadoc"):
        return _javadoc(document, place, note)
    elif document.endswith(" configs"):
        return _config(document, place, note)
    elif document.startswith("KAFKA-"):
        address = f"https://issues.apache.org/jira/browse/{document}"
    else:
        address = f"https://www.cve.org/CVERecord?id={document}"
    return Source(document, place, note, document, address)


def _proposal(document: str, place: str, note: str) -> Source:
    kip = KIPS.get(int(document.removeprefix("KIP-")))
    if kip is None:
        raise KspecError(f"{document} is not in the table of kspec/sources.py; add its title")
    if kip.page is not None:
        address = f"{_WIKI}/pages/viewpage.action?pageId={kip.page}"
    else:
        words = kip.title.replace(" ", "+")
        path = re.sub(r"[^\w.+-]", lambda found: f"%{ord(found[0]):02X}", words)
        address = f"{_WIKI}/display/KAFKA/{path}"
    return Source(document, place or f'"{kip.section}"', note, kip.title, address)


def _javadoc(document: str, place: str, note: str) -> Source:
    name = document.removesuffix(" javadoc")
    if name not in _CLASSES:
        raise KspecError(f"{name} is not among the classes of kspec/sources.py")
    address = f"{_SITE}/javadoc/org/apache/kafka/{_CLASSES[name]}/{name}.html"
    return Source(document, place, note, f"Javadoc of {name}", address)


def _config(document: str, place: str, note: str) -> Source:
    kind = document.removesuffix(" configs")
    name = next(iter(_QUOTED.findall(place)), "")
    anchor = f"#{kind}configs_{name}" if name else ""
    address = f"{_SITE}/configuration/{kind}-configs/{anchor}"
    return Source(document, place, note, f"Kafka's {kind} configs", address)


def _heading(part: str, place: str) -> str:
    """Return the address of the first heading; each of them must exist."""
    found = [_address_of(heading) for heading in _QUOTED.findall(place)]
    if not found or None in found:
        raise KspecError(
            f"{part!r} names no heading of the protocol guide that is in kspec/sources.py"
        )
    return str(found[0])


def _address_of(heading: str) -> str | None:
    name = heading.removesuffix(" API")
    if name != heading:
        known = {squash(each.name) for each in dialect("kafka").apis.values()}
        return f"{_GUIDE}#The_Messages_{name}" if squash(name) in known else None
    return _HEADINGS.get(heading.casefold())
