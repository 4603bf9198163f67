-- Which APIs are slow?
-- Times are from the request's first byte to the response's last. Fetch and JoinGroup wait on purpose.
SELECT
  api,
  count(*) AS requests,
  ms(percentile_disc(0.5) WITHIN GROUP (ORDER BY latency_ns)) AS p50_ms,
  ms(percentile_disc(0.99) WITHIN GROUP (ORDER BY latency_ns)) AS p99_ms,
  ms(max(latency_ns)) AS max_ms
FROM requests
WHERE latency_ns IS NOT NULL
GROUP BY api
ORDER BY p99_ms DESC, api
