-- How far are groups behind the end of their partitions, over time?
-- A row is a twentieth of the capture in which a group committed offsets. The end is the highest high watermark that a
-- response to Fetch had by then, for any client; without one the lag is unknown. Consumed: how far the commits went.
WITH span AS (
  SELECT min(requested_ns) AS first_ns, max(requested_ns) AS last_ns FROM requests
),
seen AS (
  SELECT
    r.run,
    r.requested_ns AS at_ns,
    regexp_extract(b.body, '"groupId":"([^"]*)"', 1) AS group_id,
    explode(partition_offsets(b.body)) AS found
  FROM requests r
  JOIN bodies b
    ON b.run = r.run AND b.connection = r.connection AND b.offset = r.request_offset
    AND b.direction = 'request'
  WHERE r.api IN ('OffsetCommit', 'TxnOffsetCommit')
  UNION ALL
  SELECT r.run, r.responded_ns AS at_ns, NULL AS group_id, explode(partition_offsets(b.body)) AS found
  FROM requests r
  JOIN bodies b
    ON b.run = r.run AND b.connection = r.connection AND b.offset = r.response_offset
    AND b.direction = 'response'
  WHERE r.api = 'Fetch'
),
named AS (
  SELECT
    s.run,
    s.at_ns,
    s.group_id,
    coalesce(t.topic, split_part(s.found, '/', 1)) AS topic,
    CAST(split_part(s.found, '/', 2) AS INT) AS partition,
    CAST(split_part(s.found, '/', 3) AS BIGINT) AS number
  FROM seen s
  LEFT JOIN (SELECT run, topic_id, max(topic) AS topic FROM topics GROUP BY run, topic_id) t
    ON t.run = s.run AND t.topic_id = split_part(s.found, '/', 1)
  WHERE s.at_ns IS NOT NULL
),
known AS (
  SELECT
    *,
    max(CASE WHEN group_id IS NULL THEN number END) OVER (
      PARTITION BY run, topic, partition ORDER BY at_ns RANGE UNBOUNDED PRECEDING
    ) AS end_offset
  FROM named
)
SELECT
  k.group_id,
  k.topic,
  k.partition,
  moment(min(k.at_ns)) AS since,
  count(*) AS commits,
  max(k.number) AS committed,
  max(k.end_offset) AS end_offset,
  max(greatest(k.end_offset - k.number, 0)) AS longest_lag,
  greatest(max(k.end_offset) - max(k.number), 0) AS lag,
  max(k.number) - min(k.number) AS consumed
FROM known k
CROSS JOIN span
WHERE k.group_id IS NOT NULL
GROUP BY k.run, k.group_id, k.topic, k.partition, part_of(k.at_ns, span.first_ns, span.last_ns, 20)
ORDER BY k.group_id, k.topic, k.partition, since, k.run
