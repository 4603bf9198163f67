-- Which clients wait longest for their responses?
-- Fetch and JoinGroup, which wait on purpose, do not count.
SELECT
  client_id,
  any_value(software_name) AS software,
  any_value(software_version) AS version,
  count(*) AS requests,
  ms(quantile_cont(latency_ns, 0.5)) AS p50_ms,
  ms(quantile_cont(latency_ns, 0.99)) AS p99_ms,
  ms(max(latency_ns)) AS max_ms
FROM requests
WHERE latency_ns IS NOT NULL AND api NOT IN ('Fetch', 'JoinGroup')
GROUP BY client_id
ORDER BY p99_ms DESC, client_id
