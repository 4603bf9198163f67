-- Which transactions were there, and how did they end?
-- The first request of a transaction begins it. One without an end was open when the capture ended.
WITH named AS (
  SELECT
    t.run,
    t.connection,
    t.request_offset,
    array_join(array_sort(collect_set(coalesce(topics.topic, t.topic))), ', ') AS topics
  FROM (SELECT run, connection, request_offset, explode(topics) AS topic FROM transactions) t
  LEFT JOIN topics ON topics.run = t.run AND topics.topic_id = t.topic
  GROUP BY ALL
)
SELECT
  t.transactional_id,
  t.producer_id,
  t.producer_epoch AS epoch,
  t.outcome,
  t.client_id,
  moment(t.began_ns) AS began,
  ms(t.duration_ns) AS took_ms,
  named.topics,
  t.partitions,
  t.offsets,
  t.requests,
  array_join(t.errors, ', ') AS errors
FROM transactions t
LEFT JOIN named USING (run, connection, request_offset)
ORDER BY
  coalesce(t.began_ns, t.ended_ns),
  t.transactional_id,
  t.run,
  t.connection,
  t.request_offset,
  t.ended_ns
