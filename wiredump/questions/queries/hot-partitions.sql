-- Which partitions carry most bytes?
-- Fetches of followers count, too.
SELECT
  coalesce(topic, topic_id) AS topic,
  partition,
  coalesce(sum(size) FILTER (WHERE api_key = 0), 0) AS produced_bytes,
  coalesce(sum(records) FILTER (WHERE api_key = 0), 0) AS produced_records,
  coalesce(sum(size) FILTER (WHERE api_key <> 0), 0) AS fetched_bytes,
  coalesce(sum(records) FILTER (WHERE api_key <> 0), 0) AS fetched_records,
  count(DISTINCT producer_id) FILTER (WHERE producer_id >= 0) AS producers
FROM batches
GROUP BY ALL
ORDER BY produced_bytes + fetched_bytes DESC, topic, partition
