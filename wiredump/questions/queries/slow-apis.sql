-- Which APIs are slow?
-- Times are from the request's first byte to the response's last. Fetch and JoinGroup wait on purpose.
SELECT
  api,
  count(*) AS requests,
  ms(quantile_cont(latency_ns, 0.5)) AS p50_ms,
  ms(quantile_cont(latency_ns, 0.99)) AS p99_ms,
  ms(max(latency_ns)) AS max_ms
FROM requests
WHERE latency_ns IS NOT NULL
GROUP BY api
ORDER BY p99_ms DESC, api
