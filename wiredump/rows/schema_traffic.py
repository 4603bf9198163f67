"""The tables about traffic: sources, connections, frames, requests, bodies, negotiations,
anomalies, packets."""

from __future__ import annotations

from typing import Final

from wiredump.rows.columns import Table, columns

__all__ = [
    "ACCOUNT", "ANOMALIES", "BODIES", "CONNECTIONS", "FRAMES", "LINEAGE", "NEGOTIATIONS", "PACKETS",
    "REQUESTS",
]  # fmt: skip

LINEAGE: Final = Table(
    "lineage",
    "What was read to make these tables, and by what.",
    columns(
        """
        capture     int32      number of the source
        source      string     its path, as it was given
        kind        string     capture, journal, request log or hexadecimal
        bytes       int64      bytes read of it, without those that damage lost
        first_ns    int64      time of its first packet or entry; null if it has none
        last_ns     int64      time of its last
        schema      int32      version of the tables' schema
        software    string     what made the tables, and its version
        """
    ),
    ("capture",),
)

CONNECTIONS: Final = Table(
    "connections",
    "Connections, in the order of their first packets.",
    columns(
        """
        connection        int64      its id: capture << 48 | place of its first packet
        client            string     host:port
        broker            string     host:port, or the broker's id in a journal
        opened_ns         int64      time of the first packet
        closed_ns         int64      time of the end; null where the source ends first
        closed_by         string     client or broker: whose FIN or reset came first; null: none
        closed_with       string     fin or reset: which that was; null likewise
        from_start        bool       whether its first byte was captured
        protocol          string     kafka, tls, another protocol's name, or unknown
        client_id         string     the last client id seen; null without one
        software_name     string     from ApiVersions (KIP-511); null without it
        software_version  string     likewise
        requests          int64      exchanges with a request
        request_bytes     int64      bytes of frames from the client
        response_bytes    int64      bytes of frames from the broker
        anomalies         int64      rows of anomalies it has
        tunnel            string     around its first packet, outermost first; null: none
        proxied_client    string     host:port of the client in a PROXY header; null without one
        proxied_broker    string     the broker that a proxy's header names; null likewise
        retransmitted     int64      segments with bytes captured before; null in journals and logs
        retransmitted_bytes  int64   how many bytes those were; null likewise, as all that follow
        out_of_order      int64      other segments captured behind bytes that follow theirs
        holes             int64      segments captured while bytes in front of them were missing
        missing_bytes     int64      bytes that were never captured
        zero_windows      int64      segments that announce a window of 0
        resets            int64      segments with RST
        handshake_ns      int64      round trip of the handshake, SYN to ACK; null if not captured
        syns              int64      SYNs of the client; null in journals and logs
        syn_acks          int64      answers to them
        copies            int64      packets with data that another interface had, too
        client_retransmitted        int64  segments that the client sent again
        client_retransmitted_bytes  int64  bytes that the client sent again
        client_out_of_order         int64  segments of the client out of order
        client_holes                int64  holes in what the client sent
        client_missing_bytes        int64  bytes of the client never captured
        client_zero_windows         int64  windows of 0 that the client announced
        client_resets               int64  segments of the client with RST
        broker_retransmitted        int64  segments that the broker sent again
        broker_retransmitted_bytes  int64  bytes that the broker sent again
        broker_out_of_order         int64  segments of the broker out of order
        broker_holes                int64  holes in what the broker sent
        broker_missing_bytes        int64  bytes of the broker never captured
        broker_zero_windows         int64  windows of 0 that the broker announced
        broker_resets               int64  segments of the broker with RST
        client_rtt_samples          int64  segments with data of the client that were timed
        client_rtt_min_ns           int64  least time to their acknowledgement; null without any
        client_rtt_median_ns        int64  median of these times, to 1/16; null likewise
        client_rtt_max_ns           int64  greatest of these times; null likewise
        broker_rtt_samples          int64  segments with data of the broker that were timed
        broker_rtt_min_ns           int64  least time to their acknowledgement; null without any
        broker_rtt_median_ns        int64  median of these times, to 1/16; null likewise
        broker_rtt_max_ns           int64  greatest of these times; null likewise
        copy_delay_ns               int64  how much later copies came, on average; null without any
        client_sequence             int64  TCP's number of the client's first data; null without any
        broker_sequence             int64  the same of the broker
        """
    ),
    ("connection",),
)

FRAMES: Final = Table(
    "frames",
    "Frames, each once: requests, responses and bare SASL tokens.",
    columns(
        """
        connection      int64      id of its connection
        direction       string     request or response
        offset          int64      of its size's first byte, within the direction
        size            int64      bytes, size field included; null in a request log
        missing         int64      bytes of it that were not captured
        first_ns        int64      time of the packet with its first byte
        last_ns         int64      time of the packet with its last byte
        capture         int32      source of the packet with its first byte
        packet          int64      place of that packet
        api_key         int16      of the request; null if no request was captured
        api_version     int16      the version its body is in; null likewise
        correlation_id  int32      null where the header is cut, or for a SASL token
        sasl            bool       whether it is a bare SASL token
        """
    ),
    ("connection", "direction", "offset"),
)

REQUESTS: Final = Table(
    "requests",
    "Requests with their responses, and responses without a request.",
    columns(
        """
        connection        int64      id of the connection
        request_offset    int64      of the request within its direction; null: no request was seen
        response_offset   int64      of the response; null: no response was seen
        requested_ns      int64      time of the request's first byte
        responded_ns      int64      when the response could be delivered: its bytes were all there
        response_last_ns  int64      time of its last byte; before that where others came later
        latency_ns        int64      from requested_ns to responded_ns; null where that is negative
        api_key           int16      null if no request was captured
        api               string     name as in the messages (AlterPartitionReassignments)
        api_version       int16      of the request
        response_version  int16      of the response: 0 where ApiVersions fell back
        dialect           string     kafka, or the draft whose bytes they are
        correlation_id    int32      null for SASL tokens
        client_id         string     of the request's header
        software_name     string     of the connection by then; null if unknown
        software_version  string     likewise
        client            string     host:port
        broker            string     host:port, or the broker's id in a journal
        request_size      int64      bytes; null without a request, and in a request log
        response_size     int64      bytes; null without a response, and in a request log
        expected          bool       false for a Produce with acks=0
        in_order          bool       false where it overtook an earlier request's response
        errors            strings    names of error codes in the response, each once, sorted
        throttle_time_ms  int32      of the response; 0 unless a quota was exceeded; null without
        problem           string     why the bodies could not be read whole; null where they could
        """
    ),
    ("connection", "request_offset", "response_offset"),
)

BODIES: Final = Table(
    "bodies",
    "Headers and bodies as JSON text, in the form of Kafka's own converters; without secrets and, "
    "by default, with the size of records instead of the records (`recordsSizeInBytes`).",
    columns(
        """
        connection      int64   id of the connection
        direction       string  request or response
        offset          int64   of the frame within the direction
        api_key         int16   null if no request was captured
        message         string  the message's name (MetadataResponse); null likewise
        version         int16   the version of the body
        correlation_id  int32   of the header
        header          string  JSON; null where it cannot be read
        body            string  JSON, as far as it could be read; null where nothing could
        problem         string  why it is not whole; null where it is
        """
    ),
    ("connection", "direction", "offset"),
)

NEGOTIATIONS: Final = Table(
    "negotiations",
    "ApiVersions exchanges, and every answer that a version is not supported.",
    columns(
        """
        connection        int64      id of the connection
        request_offset    int64      of the request within its direction
        requested_ns      int64      time of the request
        client            string     host:port
        broker            string     host:port, or the broker's id in a journal
        client_id         string     of the request's header
        software_name     string     from ApiVersions; null without it
        software_version  string     likewise
        event             string     offered, fell back, refused or unsupported
        api_key           int16      the API offered or refused; 18 for ApiVersions itself
        api_version       int16      the version of the request
        lowest            int16      least version that the broker offers; null if unknown
        highest           int16      greatest likewise
        """
    ),
    ("connection", "request_offset", "event", "api_key"),
)

ANOMALIES: Final = Table(
    "anomalies",
    "Irregularities, with the number of bytes that each one affects.",
    columns(
        """
        connection    int64      null if it belongs to no connection
        direction     string     request or response; null if it has none
        offset        int64      within the direction; null likewise
        kind          string     for programs
        reason        string     for people
        timestamp_ns  int64      of the packet
        capture       int32      source
        packet        int64      place of the packet, or of the damage
        bytes         int64      of payload that are in no frame because of it
        missing       int64      bytes that were not captured
        """
    ),
    ("capture", "packet", "kind", "connection", "direction", "offset", "reason"),
)

ACCOUNT: Final = Table(
    "account",
    "Where bytes of TCP payload went, and packets without TCP. No rows without a capture. Rows "
    "such as `unread: tls` count the bytes of payload that were not read, by reason, and `lost: "
    "damaged` those of the file that belong to no record.",
    columns(
        """
        what     string  payload, of it frames, retransmitted, copies, anomalies, tls; missing; udp
        bytes    int64   how many; null for packets
        packets  int64   how many packets carry that and no TCP that could be read; null for bytes
        """
    ),
    ("what",),
)

PACKETS: Final = Table(
    "packets",
    "Packets that carry TCP, and those that could not be read. Made on request only.",
    columns(
        """
        capture           int32   source
        packet            int64   place of its record
        timestamp_ns      int64   its time; 0 where its record cannot be read
        interface         int32   of the capture, from 0; null where its record cannot be read
        link_type         int32   as pcap numbers them (1: Ethernet); null likewise
        captured          int64   bytes of it that are in the capture; null likewise
        length            int64   bytes it had on the wire: more, where a snaplen cut it
        source            string  IP address; null where it cannot be read
        source_port       int32   null likewise, and for a piece of a datagram
        destination       string  IP address; null where it cannot be read
        destination_port  int32   null likewise, and for a piece of a datagram
        sequence          int64   sequence number as on the wire; null likewise, as all that follow
        acknowledgement   int64   as on the wire, whether or not the flags say that it counts
        flags             int16   FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128
        window            int32   as on the wire, not scaled
        payload           int64   bytes of TCP payload captured; all pieces' in the last of them
        missing           int64   further bytes of payload according to the IP length
        connection        int64   id of its connection
        offset            int64   of the payload within the direction (without TLS); null if unknown
        retransmitted     int64   bytes of the payload that had been captured before
        anomalous         int64   bytes of it that are in no stream; all others are (see anomalies)
        problem           string  why there is no segment; null for segments
        tunnel            string  tunnels around it, outermost first (vxlan 7); null: none
        """
    ),
    ("capture", "packet"),
)
