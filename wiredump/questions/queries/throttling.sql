-- Which clients were throttled, or exceeded a quota?
-- A broker names the time in each response and does not read from the connection for so long (KIP-219).
SELECT
  client_id,
  api,
  broker,
  count(*) AS responses,
  sum(throttle_time_ms) AS throttled_ms,
  max(throttle_time_ms) AS longest_ms,
  count(*) FILTER (WHERE array_contains(errors, 'THROTTLING_QUOTA_EXCEEDED')) AS refused,
  moment(min(responded_ns)) AS first_seen,
  moment(max(responded_ns)) AS last_seen
FROM requests
WHERE throttle_time_ms > 0 OR array_contains(errors, 'THROTTLING_QUOTA_EXCEEDED')
GROUP BY client_id, api, broker
ORDER BY throttled_ms DESC, client_id, api, broker
