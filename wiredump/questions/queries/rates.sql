-- How many records and bytes go to and from each partition, over time?
-- A row is a twentieth of the capture in which a partition had record batches. Fetches of followers count, too.
WITH span AS (
  SELECT min(timestamp_ns) AS first_ns, max(timestamp_ns) AS last_ns FROM batches
),
placed AS (
  SELECT
    b.*,
    part_of(b.timestamp_ns, span.first_ns, span.last_ns, 20) AS part,
    greatest(span.last_ns - span.first_ns, 20000000) / 20000000000.0 AS seconds
  FROM batches b
  CROSS JOIN span
)
SELECT
  coalesce(topic, topic_id) AS topic,
  partition,
  moment(min(timestamp_ns)) AS since,
  coalesce(sum(records) FILTER (WHERE api_key = 0), 0) AS produced_records,
  coalesce(sum(size) FILTER (WHERE api_key = 0), 0) AS produced_bytes,
  coalesce(sum(records) FILTER (WHERE api_key <> 0), 0) AS fetched_records,
  coalesce(sum(size) FILTER (WHERE api_key <> 0), 0) AS fetched_bytes,
  CAST(round(CAST(coalesce(sum(size) FILTER (WHERE api_key = 0), 0) AS DOUBLE) / max(seconds)) AS BIGINT) AS produced_bytes_a_second,
  CAST(round(CAST(coalesce(sum(size) FILTER (WHERE api_key <> 0), 0) AS DOUBLE) / max(seconds)) AS BIGINT) AS fetched_bytes_a_second
FROM placed
GROUP BY run, coalesce(topic, topic_id), partition, part
ORDER BY topic, partition, since, run
