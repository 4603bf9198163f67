-- Which clients were throttled?
-- The broker names the time in each response and does not read from the connection for so long (KIP-219).
SELECT
  r.client_id,
  r.api,
  count(*) AS responses,
  sum(CAST(a.body::JSON->>'throttleTimeMs' AS BIGINT)) AS throttled_ms,
  max(CAST(a.body::JSON->>'throttleTimeMs' AS BIGINT)) AS longest_ms,
  moment(min(r.responded_ns)) AS first_seen,
  moment(max(r.responded_ns)) AS last_seen
FROM requests r
JOIN bodies a ON a.run = r.run AND a.connection = r.connection AND a.direction = 'response'
  AND a."offset" = r.response_offset
WHERE CAST(a.body::JSON->>'throttleTimeMs' AS BIGINT) > 0
GROUP BY r.client_id, r.api
ORDER BY throttled_ms DESC, r.client_id, r.api
