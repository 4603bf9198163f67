-- What is wrong, most important first?
-- Each finding is followed by the command that shows its requests. Few and small irregularities are no findings.
-- The weightiest of each kind come first, so that many of one kind do not hide another.
WITH timed AS (
  SELECT
    r.broker,
    r.latency_ns
      - 1000000 * CAST(nullif(regexp_extract(b.body, '"maxWaitMs":([0-9]+)', 1), '') AS BIGINT) AS late_ns
  FROM requests r
  JOIN bodies b
    ON b.run = r.run AND b.connection = r.connection AND b.offset = r.request_offset
    AND b.direction = 'request'
  WHERE r.api IN ('Fetch', 'ShareFetch')
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
  FROM requests
  WHERE api NOT IN ('Fetch', 'ShareFetch', 'JoinGroup', 'SyncGroup') AND latency_ns IS NOT NULL
  GROUP BY broker
),
failed AS (
  SELECT
    split_part(found, '/', 1) AS error,
    split_part(found, '/', 1) IN (
      'INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED', 'OUT_OF_ORDER_SEQUENCE_NUMBER',
      'UNKNOWN_PRODUCER_ID', 'NOT_ENOUGH_REPLICAS', 'CORRUPT_MESSAGE', 'KAFKA_STORAGE_ERROR',
      'SASL_AUTHENTICATION_FAILED', 'TRANSACTION_COORDINATOR_FENCED', 'FENCED_INSTANCE_ID'
    ) AS is_severe,
    split_part(found, '/', 2) AS topic,
    split_part(found, '/', 3) AS partition,
    api,
    broker,
    count(*) AS responses,
    count(DISTINCT client_id) AS clients,
    max(client_id) AS client_id
  FROM (
    SELECT
      r.api,
      r.broker,
      coalesce(r.client_id, '') AS client_id,
      explode(CASE WHEN b.body IS NULL THEN r.errors ELSE partition_errors(b.body) END) AS found
    FROM requests r
    LEFT JOIN bodies b
      ON b.run = r.run AND b.connection = r.connection AND b.offset = r.response_offset
      AND b.direction = 'response'
    WHERE array_size(r.errors) > 0 AND array_join(r.errors, ',') <> 'NONE'
  )
  WHERE found <> 'NONE' AND found NOT LIKE 'MEMBER_ID_REQUIRED/%'
    AND NOT (api = 'ApiVersions' AND found LIKE 'UNSUPPORTED_VERSION/%')
  GROUP BY found, api, broker
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
  WHERE requests >= 20 AND p95_ns >= 500000000
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
)
SELECT row_number() OVER (ORDER BY is_next, weight DESC, finding) AS rank, finding, command
FROM (
  SELECT
    *,
    CASE WHEN row_number() OVER (PARTITION BY kind ORDER BY weight DESC, finding) = 1 THEN 0 ELSE 1 END AS is_next
  FROM findings
)
ORDER BY is_next, weight DESC, finding
