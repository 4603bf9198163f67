-- Which clients wait longest for their responses?
-- Fetch and JoinGroup, which wait on purpose, do not count.
SELECT
  client_id,
  max(software_name) AS software,
  max_by(software_version, (software_name, software_version))
    FILTER (WHERE software_name IS NOT NULL AND software_version IS NOT NULL) AS version,
  count(*) AS requests,
  ms(percentile_disc(0.5) WITHIN GROUP (ORDER BY latency_ns)) AS p50_ms,
  ms(percentile_disc(0.99) WITHIN GROUP (ORDER BY latency_ns)) AS p99_ms,
  ms(max(latency_ns)) AS max_ms
FROM requests
WHERE latency_ns IS NOT NULL AND api NOT IN ('Fetch', 'JoinGroup')
GROUP BY client_id
ORDER BY p99_ms DESC, client_id
