-- What is wrong, most important first?
-- Each finding is followed by the command that shows its requests. Few and small irregularities are no findings.
-- The weightiest of each kind come first, so that many of one kind do not hide another.
WITH events AS (
  SELECT run, requested_ns AS at_ns FROM requests WHERE requested_ns IS NOT NULL
  UNION ALL
  SELECT run, responded_ns AS at_ns FROM requests WHERE responded_ns IS NOT NULL
),
waits AS (
  SELECT
    r.run, r.connection, r.request_offset,
    1000000 * CAST(nullif(regexp_extract(b.body, '"maxWaitMs":([0-9]+)', 1), '') AS BIGINT) AS wait_ns
  FROM requests r
  JOIN bodies b
    ON b.run = r.run AND b.connection = r.connection AND b.offset = r.request_offset
    AND b.direction = 'request'
  WHERE r.api IN ('Fetch', 'ShareFetch')
),
overdue AS (
  SELECT r.run, r.broker, r.requested_ns, r.responded_ns, r.latency_ns - coalesce(w.wait_ns, 0) AS late_ns
  FROM requests r
  LEFT JOIN waits w
    ON w.run = r.run AND w.connection = r.connection AND w.request_offset = r.request_offset
  WHERE r.latency_ns >= 1000000000 AND r.api NOT IN ('JoinGroup', 'SyncGroup')
),
silences AS (
  SELECT s.run, s.since_ns, s.until_ns
  FROM (
    SELECT run, at_ns AS since_ns, lead(at_ns) OVER (PARTITION BY run ORDER BY at_ns) AS until_ns
    FROM events
  ) s
  JOIN overdue r
    ON r.run = s.run AND r.requested_ns <= s.since_ns AND r.responded_ns >= s.until_ns
    AND 10 * r.late_ns >= 8 * (s.until_ns - s.since_ns)
  WHERE s.until_ns - s.since_ns >= 1000000000
  GROUP BY s.run, s.since_ns, s.until_ns
  HAVING count(DISTINCT r.broker) >= 2
),
answered AS (
  SELECT r.*
  FROM requests r
  LEFT JOIN silences s
    ON s.run = r.run AND r.requested_ns <= s.since_ns AND r.responded_ns >= s.until_ns
  WHERE s.run IS NULL
),
span AS (
  SELECT run, max(at_ns) AS last_ns FROM events GROUP BY run
),
hung AS (
  SELECT r.broker, r.api, coalesce(r.client_id, '?') AS client_id,
    least(coalesce(c.closed_ns, s.last_ns), s.last_ns) - r.requested_ns AS open_ns
  FROM requests r
  JOIN connections c ON c.run = r.run AND c.connection = r.connection
  JOIN span s ON s.run = r.run
  WHERE r.requested_ns IS NOT NULL AND r.response_offset IS NULL AND r.expected
    AND r.api NOT IN ('JoinGroup', 'SyncGroup') AND c.missing_bytes = 0
    AND (c.response_bytes > 0 OR c.syn_acks > 0)
    AND (c.closed_ns IS NOT NULL OR coalesce(c.closed_by, '') <> 'broker')
),
dropped AS (
  SELECT
    c.broker, c.client_id, c.connection,
    max_by(r.api, (r.requested_ns, r.request_offset, r.api, r.api_version)) AS api,
    max_by(r.api_version, (r.requested_ns, r.request_offset, r.api, r.api_version)) AS api_version
  FROM connections c
  JOIN requests r ON r.run = c.run AND r.connection = c.connection
  WHERE c.closed_by = 'broker' AND c.missing_bytes = 0 AND r.requested_ns IS NOT NULL
    AND r.response_offset IS NULL AND r.expected AND r.api IS NOT NULL AND r.api_version IS NOT NULL
    AND r.request_offset IS NOT NULL
  GROUP BY c.run, c.broker, c.client_id, c.connection
),
reconnected AS (
  SELECT
    regexp_replace(client, ':[0-9]+$', '') AS host, client_id, count(*) AS opened,
    count(DISTINCT broker) AS brokers, max(broker) AS broker, max(opened_ns) - min(opened_ns) AS span_ns
  FROM connections c
  WHERE syns > 0 AND syn_acks > 0 AND closed_ns - opened_ns < 10000000000 AND requests <= 4
    AND NOT EXISTS (SELECT 1 FROM twins t WHERE t.run = c.run AND t.connection = c.connection)
  GROUP BY run, host, client_id
),
committed AS (
  SELECT
    r.run,
    regexp_extract(b.body, '"groupId":"([^"]*)"', 1) AS group_id,
    explode(partition_offsets(b.body)) AS found
  FROM requests r
  JOIN bodies b
    ON b.run = r.run AND b.connection = r.connection AND b.offset = r.request_offset
    AND b.direction = 'request'
  WHERE r.api IN ('OffsetCommit', 'TxnOffsetCommit') AND array_size(r.errors) = 0
),
ends AS (
  SELECT r.run, explode(partition_offsets(b.body)) AS found
  FROM requests r
  JOIN bodies b
    ON b.run = r.run AND b.connection = r.connection AND b.offset = r.response_offset
    AND b.direction = 'response'
  WHERE r.api = 'Fetch'
),
stuck AS (
  SELECT c.group_id, c.part, c.commits, c.committed, e.end_offset
  FROM (
    SELECT
      c.run, c.group_id,
      coalesce(t.topic, split_part(c.found, '/', 1)) || '-' || split_part(c.found, '/', 2) AS part,
      split_part(c.found, '/', 1) || '/' || split_part(c.found, '/', 2) AS place,
      count(*) AS commits,
      max(CAST(split_part(c.found, '/', 3) AS BIGINT)) AS committed,
      min(CAST(split_part(c.found, '/', 3) AS BIGINT)) AS lowest
    FROM committed c
    LEFT JOIN (SELECT run, topic_id, max(topic) AS topic FROM topics GROUP BY run, topic_id) t
      ON t.run = c.run AND t.topic_id = split_part(c.found, '/', 1)
    GROUP BY c.run, c.group_id, part, place
  ) c
  JOIN (
    SELECT
      run,
      split_part(found, '/', 1) || '/' || split_part(found, '/', 2) AS place,
      max(CAST(split_part(found, '/', 3) AS BIGINT)) AS end_offset
    FROM ends
    GROUP BY run, place
  ) e ON e.run = c.run AND e.place = c.place
  WHERE c.commits >= 3 AND c.committed = c.lowest AND e.end_offset > c.committed
),
repeated AS (
  SELECT f.client_id, f.part, f.fetch_offset, count(*) AS times
  FROM (
    SELECT
      run, connection, request_offset, client_id, fetch_offset,
      coalesce(topic, topic_id) || '-' || partition AS part, coalesce(topic, topic_id) AS place,
      partition
    FROM fetches
    WHERE partition IS NOT NULL
  ) f
  JOIN requests r
    ON r.run = f.run AND r.connection = f.connection AND r.request_offset = f.request_offset
  JOIN (
    SELECT run, connection, frame_offset, coalesce(topic, topic_id) AS place, partition
    FROM batches
    WHERE api_key = 1
    GROUP BY run, connection, frame_offset, place, partition
  ) b
    ON b.run = r.run AND b.connection = r.connection AND b.frame_offset = r.response_offset
    AND b.place = f.place AND b.partition = f.partition
  GROUP BY f.run, f.client_id, f.part, f.fetch_offset
),
timed AS (
  SELECT
    r.broker,
    r.latency_ns - w.wait_ns AS late_ns
  FROM answered r
  JOIN waits w
    ON w.run = r.run AND w.connection = r.connection AND w.request_offset = r.request_offset
),
late AS (
  SELECT
    broker,
    count(*) AS fetches,
    count(*) FILTER (WHERE late_ns >= 200000000) AS late,
    max(late_ns) AS longest_ns
  FROM timed
  GROUP BY broker
),
slow AS (
  SELECT
    broker,
    count(*) AS requests,
    percentile_disc(0.5) WITHIN GROUP (ORDER BY latency_ns) AS median_ns,
    percentile_disc(0.95) WITHIN GROUP (ORDER BY latency_ns) AS p95_ns
  FROM answered
  WHERE api NOT IN ('Fetch', 'ShareFetch', 'JoinGroup', 'SyncGroup') AND latency_ns IS NOT NULL
  GROUP BY broker
),
failed AS (
  SELECT
    split_part(found, '/', 1) AS error,
    split_part(found, '/', 1) IN (
      'INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'OUT_OF_ORDER_SEQUENCE_NUMBER',
      'UNKNOWN_PRODUCER_ID', 'NOT_ENOUGH_REPLICAS', 'CORRUPT_MESSAGE', 'KAFKA_STORAGE_ERROR',
      'SASL_AUTHENTICATION_FAILED', 'TRANSACTION_COORDINATOR_FENCED', 'FENCED_INSTANCE_ID',
      'MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD',
      'UNSUPPORTED_SASL_MECHANISM', 'ILLEGAL_SASL_STATE', 'OFFSET_OUT_OF_RANGE',
      'NOT_ENOUGH_REPLICAS_AFTER_APPEND', 'TOPIC_AUTHORIZATION_FAILED',
      'GROUP_AUTHORIZATION_FAILED', 'CLUSTER_AUTHORIZATION_FAILED',
      'TRANSACTIONAL_ID_AUTHORIZATION_FAILED'
    ) AS is_severe,
    coalesce(topics.topic, split_part(found, '/', 2)) AS topic,
    split_part(found, '/', 3) AS partition,
    api,
    broker,
    count(*) AS responses,
    count(DISTINCT client_id) AS clients,
    max(client_id) AS client_id
  FROM (
    SELECT
      r.run,
      r.api,
      r.broker,
      coalesce(r.client_id, '') AS client_id,
      explode(CASE WHEN b.body IS NULL THEN r.errors ELSE partition_errors(b.body) END) AS found
    FROM requests r
    LEFT JOIN bodies b
      ON b.run = r.run AND b.connection = r.connection AND b.offset = r.response_offset
      AND b.direction = 'response'
    WHERE array_size(r.errors) > 0 AND array_join(r.errors, ',') <> 'NONE'
  ) e
  LEFT JOIN topics ON topics.run = e.run AND topics.topic_id = split_part(found, '/', 2)
  WHERE found <> 'NONE' AND found NOT LIKE 'MEMBER_ID_REQUIRED/%'
    AND NOT (api = 'ApiVersions' AND found LIKE 'UNSUPPORTED_VERSION/%')
  GROUP BY found, topics.topic, api, broker
),
rebalanced AS (
  SELECT
    group_id,
    count(*) AS rebalances,
    count(*) FILTER (WHERE outcome IN ('failed', 'superseded')) AS failed,
    max(began_ns) - min(began_ns) AS span_ns
  FROM groups
  GROUP BY group_id
),
storms AS (
  SELECT client_id, max(requests) AS most_a_second, sum(requests) AS requests
  FROM (
    SELECT client_id, floor(requested_ns / 1000000000.0) AS second, count(*) AS requests
    FROM requests
    WHERE api = 'Metadata' AND requested_ns IS NOT NULL
    GROUP BY client_id, second
  )
  GROUP BY client_id
),
findings AS (
  SELECT
    1 AS kind,
    1000.0 + rebalances AS weight,
    'group ' || group_id || ' rebalanced ' || rebalances || ' times in '
      || CAST(ms(span_ns) AS STRING) || ' ms; ' || failed || ' of these did not complete' AS finding,
    'wiredump ask rebalances FILE' AS command
  FROM rebalanced
  WHERE rebalances >= 5 AND span_ns <= 60000000000 * rebalances
  UNION ALL
  SELECT
    2,
    900.0 + ms(longest_ns) / 1000,
    'broker ' || broker || ' answered ' || late || ' of ' || fetches
      || ' fetches at least 200 ms beyond their own maximal wait, the latest by '
      || CAST(ms(longest_ns) AS STRING) || ' ms',
    'wiredump ask slow-brokers FILE'
  FROM late
  WHERE late >= 3 AND 10 * late >= fetches
  UNION ALL
  SELECT
    3,
    800.0 + ms(p95_ns) / 1000,
    'broker ' || broker || ' needed ' || CAST(ms(p95_ns) AS STRING)
      || ' ms for the slowest twentieth of ' || requests || ' requests that do not wait',
    'wiredump ask slow-brokers FILE'
  FROM slow
  WHERE (requests >= 20 AND p95_ns >= 500000000) OR (requests >= 5 AND median_ns >= 500000000)
  UNION ALL
  SELECT
    CASE WHEN is_severe THEN 4 ELSE 5 END,
    CASE WHEN is_severe THEN 950.0 ELSE 700.0 END + least(responses, 100) / 10.0,
    error || CASE WHEN topic = '' THEN '' ELSE ' for ' || topic END
      || CASE WHEN partition = '' THEN '' ELSE '-' || partition END
      || ' from broker ' || broker || ': ' || responses || ' responses to ' || api || ' of '
      || CASE WHEN clients = 1 THEN 'client ' || client_id ELSE clients || ' clients' END,
    'wiredump show FILE --errors --api ' || api
  FROM failed
  WHERE (responses >= 3 AND error NOT IN ('CONCURRENT_TRANSACTIONS', 'REBALANCE_IN_PROGRESS',
      'COORDINATOR_LOAD_IN_PROGRESS', 'COORDINATOR_NOT_AVAILABLE'))
    OR responses >= 30 OR is_severe
  UNION ALL
  SELECT
    6,
    650.0,
    'client ' || coalesce(client_id, '?') || ' was throttled in ' || count(*) || ' responses, for '
      || sum(throttle_time_ms) || ' ms in all and up to ' || max(throttle_time_ms) || ' ms',
    'wiredump ask throttling FILE'
  FROM requests
  WHERE throttle_time_ms > 0
  GROUP BY client_id
  UNION ALL
  SELECT
    7,
    620.0,
    'client ' || coalesce(client_id, '?') || ' asked for metadata ' || most_a_second
      || ' times in one second, ' || requests || ' times in all',
    'wiredump ask metadata-storms FILE'
  FROM storms
  WHERE most_a_second >= 20
  UNION ALL
  SELECT
    8,
    600.0 + least(holes, 100) / 10.0,
    'between ' || client || ' and ' || broker || ' ' || missing_bytes || ' bytes were never captured, '
      || retransmitted || ' segments were sent again and ' || out_of_order || ' came out of order',
    'wiredump ask network FILE'
  FROM connections
  WHERE missing_bytes >= 1000 OR retransmitted + out_of_order >= 10
  UNION ALL
  SELECT
    9,
    550.0,
    'client ' || coalesce(client_id, '?') || ' sends ' || api || ' in version ' || min(api_version)
      || ', which brokers since 4.0 refuse',
    'wiredump audit FILE --to kafka-4.0'
  FROM requests
  WHERE (api = 'Produce' AND api_version < 3) OR (api = 'Fetch' AND api_version < 4)
    OR (api = 'ListOffsets' AND api_version < 1) OR (api = 'JoinGroup' AND api_version < 2)
  GROUP BY client_id, api
  UNION ALL
  SELECT
    10,
    500.0,
    'broker ' || broker || ' refused, or did not answer, ' || count(*) || ' attempts to connect',
    'wiredump ask attempts FILE'
  FROM connections
  WHERE syns > 0 AND syn_acks = 0 AND request_bytes + response_bytes + missing_bytes = 0
  GROUP BY broker
  UNION ALL
  SELECT
    11,
    940.0 + least(count(*), 100) / 10.0,
    'broker ' || broker || ' left ' || count(*) || ' requests unanswered for at least 10 s, the oldest, '
      || max_by(api, (open_ns, api, client_id)) || ' of client '
      || max_by(client_id, (open_ns, api, client_id)) || ', for '
      || CAST(ms(max(open_ns)) AS STRING) || ' ms',
    'wiredump show FILE --errors'
  FROM hung
  WHERE open_ns >= 10000000000
  GROUP BY broker
  UNION ALL
  SELECT
    12,
    930.0 + least(count(*), 100) / 10.0,
    'broker ' || broker || ' closed ' || count(*) || ' connections of client ' || coalesce(client_id, '?')
      || ' without an answer, ' || count(*) FILTER (WHERE api = 'Fetch') || ' of them to Fetch, the last one to '
      || max_by(api, (connection, api, api_version)) || ' in version '
      || max_by(api_version, (connection, api, api_version)),
    'wiredump show FILE --errors'
  FROM dropped
  GROUP BY broker, client_id
  HAVING count(*) >= 2
  UNION ALL
  SELECT
    13,
    640.0 + least(sum(client_zero_windows), 100) / 10.0,
    'client ' || coalesce(client_id, '?') || ' at ' || regexp_replace(client, ':[0-9]+$', '')
      || ' does not read what broker ' || broker || ' sends: its window was full ' || sum(client_zero_windows)
      || ' times',
    'wiredump ask network FILE'
  FROM connections
  WHERE client_zero_windows > 0
  GROUP BY client_id, regexp_replace(client, ':[0-9]+$', ''), broker
  HAVING sum(client_zero_windows) >= 3
  UNION ALL
  SELECT
    14,
    635.0 + least(sum(broker_zero_windows), 100) / 10.0,
    'broker ' || broker || ' does not read what clients send: its window was full '
      || sum(broker_zero_windows) || ' times',
    'wiredump ask network FILE'
  FROM connections
  WHERE broker_zero_windows > 0
  GROUP BY broker
  HAVING sum(broker_zero_windows) >= 3
  UNION ALL
  SELECT
    15,
    910.0 + least(opened, 100) / 10.0,
    'client ' || coalesce(client_id, '?') || ' at ' || host || ' opened ' || opened || ' connections to '
      || CASE WHEN brokers > 1 THEN brokers || ' brokers' ELSE 'broker ' || broker END || ' in '
      || CAST(ms(span_ns) AS STRING) || ' ms, each for up to 4 requests and 10 s',
    'wiredump ask top-talkers FILE'
  FROM reconnected
  WHERE opened >= 20 AND span_ns <= 2000000000 * opened
  UNION ALL
  SELECT
    16,
    890.0,
    'group ' || group_id || ' commits offset ' || committed || ' of ' || part || ' again and again, '
      || commits || ' times, while the partition ends at ' || end_offset,
    'wiredump ask lag FILE'
  FROM stuck
  UNION ALL
  SELECT
    17,
    880.0 + least(times, 100) / 10.0,
    'client ' || coalesce(client_id, '?') || ' fetched ' || part || ' from offset ' || fetch_offset || ' '
      || times || ' times, and got records each time',
    'wiredump show FILE --api Fetch'
  FROM repeated
  WHERE times >= 5
  UNION ALL
  SELECT
    18,
    1100.0,
    'the clock of the capture stepped, or the capture paused: nothing was captured for '
      || CAST(ms(max(until_ns - since_ns)) AS STRING) || ' ms, while requests to several brokers were open',
    'wiredump show FILE'
  FROM silences
  HAVING count(*) > 0
  UNION ALL
  SELECT
    18,
    1100.0,
    'the clock of the capture went back, by up to ' || CAST(ms(max(requested_ns - responded_ns)) AS STRING)
      || ' ms: ' || count(*) || ' responses have a time before that of their requests',
    'wiredump show FILE'
  FROM requests
  WHERE responded_ns < requested_ns
  HAVING count(*) > 0
)
SELECT row_number() OVER (ORDER BY is_next, weight DESC, finding) AS rank, finding, command
FROM (
  SELECT
    *,
    CASE WHEN row_number() OVER (PARTITION BY kind ORDER BY weight DESC, finding) = 1 THEN 0 ELSE 1 END AS is_next
  FROM findings
)
ORDER BY is_next, weight DESC, finding
