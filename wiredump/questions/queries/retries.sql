-- Which producers sent batches again, or never got an acknowledgement?
-- Sent again: batches of idempotent producers whose first sequence number was sent before. Lost: requests without a response
-- on connections that were closed. Duplicates: acknowledgements with DUPLICATE_SEQUENCE_NUMBER.
WITH sent AS (
  SELECT
    b.run,
    r.client_id,
    coalesce(b.topic, b.topic_id) AS topic,
    b.partition,
    b.producer_id,
    b.base_sequence,
    b.connection,
    b.frame_offset,
    r.response_offset IS NULL AND r.expected AND c.closed_ns IS NOT NULL AS is_lost,
    array_contains(r.errors, 'DUPLICATE_SEQUENCE_NUMBER') AS is_duplicate,
    row_number() OVER (
      PARTITION BY b.run, coalesce(b.topic, b.topic_id), b.partition, b.producer_id,
        b.producer_epoch, b.base_sequence
      ORDER BY b.timestamp_ns, b.connection, b.frame_offset, b.batch
    ) > 1 AND b.base_sequence IS NOT NULL AS is_again
  FROM batches b
  JOIN requests r
    ON r.run = b.run AND r.connection = b.connection AND r.request_offset = b.frame_offset
  LEFT JOIN connections c ON c.run = b.run AND c.connection = b.connection
  WHERE b.api_key = 0
)
SELECT
  client_id,
  topic,
  partition,
  count(*) AS batches,
  count(*) FILTER (WHERE is_again) AS sent_again,
  count(*) FILTER (WHERE is_lost) AS lost,
  count(*) FILTER (WHERE is_duplicate) AS duplicates
FROM sent
GROUP BY client_id, topic, partition
HAVING count(*) FILTER (WHERE is_again OR is_lost OR is_duplicate) > 0
ORDER BY sent_again + lost + duplicates DESC, client_id, topic, partition
