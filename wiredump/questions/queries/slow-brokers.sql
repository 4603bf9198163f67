-- Which brokers are slow?
-- Fetch and JoinGroup, which wait on purpose, do not count. The last column is the network's share.
SELECT
  r.broker,
  count(*) AS requests,
  ms(quantile_cont(r.latency_ns, 0.5)) AS p50_ms,
  ms(quantile_cont(r.latency_ns, 0.99)) AS p99_ms,
  ms(max(r.latency_ns)) AS max_ms,
  arg_max(r.api, r.latency_ns) AS slowest_api,
  ms(median(c.client_rtt_median_ns)) AS round_trip_ms
FROM requests r
LEFT JOIN connections c USING (run, connection)
WHERE r.latency_ns IS NOT NULL AND r.api NOT IN ('Fetch', 'JoinGroup')
GROUP BY r.broker
ORDER BY p99_ms DESC, r.broker
