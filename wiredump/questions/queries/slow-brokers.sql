-- Which brokers are slow?
-- Fetch and JoinGroup, which wait on purpose, do not count. The last column is the network's share.
SELECT
  r.broker,
  count(*) AS requests,
  ms(percentile_disc(0.5) WITHIN GROUP (ORDER BY r.latency_ns)) AS p50_ms,
  ms(percentile_disc(0.99) WITHIN GROUP (ORDER BY r.latency_ns)) AS p99_ms,
  ms(max(r.latency_ns)) AS max_ms,
  max_by(r.api, (r.latency_ns, r.api)) AS slowest_api,
  ms(percentile_disc(0.5) WITHIN GROUP (ORDER BY c.client_rtt_median_ns)) AS round_trip_ms
FROM requests r
LEFT JOIN connections c USING (run, connection)
WHERE r.latency_ns IS NOT NULL AND r.api NOT IN ('Fetch', 'JoinGroup')
GROUP BY r.broker
ORDER BY p99_ms DESC, r.broker
