-- Which transactions were there, and how did they end?
-- The first request of a transaction begins it. One without an end was open when the capture ended.
WITH events AS (
  SELECT
    r.requested_ns,
    r.responded_ns,
    r.api,
    r.errors,
    r.client_id,
    q.body::JSON AS request,
    coalesce(
      q.body::JSON->>'transactionalId',
      q.body::JSON->>'v3AndBelowTransactionalId',
      q.body::JSON->>'$.transactions[0].transactionalId'
    ) AS transactional_id
  FROM requests r
  JOIN bodies q ON q.run = r.run AND q.connection = r.connection AND q.direction = 'request'
    AND q."offset" = r.request_offset
  WHERE r.api IN ('Produce', 'AddPartitionsToTxn', 'AddOffsetsToTxn', 'TxnOffsetCommit', 'EndTxn')
    AND q.body IS NOT NULL
),
numbered AS (
  SELECT
    *,
    count(*) FILTER (api = 'EndTxn') OVER (
      PARTITION BY transactional_id ORDER BY requested_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS number
  FROM events
  WHERE transactional_id IS NOT NULL AND transactional_id <> ''
)
SELECT
  transactional_id,
  number + 1 AS transaction,
  any_value(client_id) AS client_id,
  moment(min(requested_ns)) AS began,
  ms(max(responded_ns) - min(requested_ns)) AS took_ms,
  CASE
    WHEN count(*) FILTER (api = 'EndTxn') = 0 THEN 'open'
    WHEN bool_or(request->>'committed' = 'true') THEN 'committed'
    ELSE 'aborted'
  END AS outcome,
  count(*) AS requests,
  string_agg(DISTINCT array_to_string(list_filter(errors, lambda each: each <> 'NONE'), ', '), ', ')
    FILTER (len(list_filter(errors, lambda each: each <> 'NONE')) > 0) AS errors
FROM numbered
GROUP BY transactional_id, number
ORDER BY min(requested_ns), transactional_id
