-- Which brokers are slow?
-- Of Fetch, ShareFetch and JoinGroup, which wait on purpose, the time beyond the longest that the request allows
-- counts, if there is any: the columns that begin with late. The last column is the network's share.
WITH timed AS (
  SELECT
    r.run,
    r.connection,
    r.broker,
    r.api,
    r.latency_ns,
    r.api IN ('Fetch', 'ShareFetch', 'JoinGroup') AS waits,
    r.latency_ns - 1000000 * CAST(coalesce(
      nullif(regexp_extract(b.body, '"(maxWaitMs|rebalanceTimeoutMs)":([0-9]+)', 2), ''),
      nullif(regexp_extract(b.body, '"sessionTimeoutMs":([0-9]+)', 1), '')
    ) AS BIGINT) AS late_ns
  FROM requests r
  LEFT JOIN bodies b
    ON r.api IN ('Fetch', 'ShareFetch', 'JoinGroup') AND b.run = r.run
    AND b.connection = r.connection AND b.offset = r.request_offset AND b.direction = 'request'
  WHERE r.latency_ns IS NOT NULL
)
SELECT
  t.broker,
  count(*) FILTER (WHERE NOT t.waits) AS requests,
  ms(percentile_disc(0.5) WITHIN GROUP (ORDER BY t.latency_ns) FILTER (WHERE NOT t.waits)) AS p50_ms,
  ms(percentile_disc(0.99) WITHIN GROUP (ORDER BY t.latency_ns) FILTER (WHERE NOT t.waits)) AS p99_ms,
  ms(max(t.latency_ns) FILTER (WHERE NOT t.waits)) AS max_ms,
  max_by(t.api, (t.latency_ns, t.api)) FILTER (WHERE NOT t.waits) AS slowest_api,
  count(*) FILTER (WHERE t.waits AND t.late_ns > 0) AS late,
  ms(percentile_disc(0.5) WITHIN GROUP (ORDER BY t.late_ns)
    FILTER (WHERE t.waits AND t.late_ns > 0)) AS late_p50_ms,
  ms(max(t.late_ns) FILTER (WHERE t.waits AND t.late_ns > 0)) AS late_max_ms,
  ms(percentile_disc(0.5) WITHIN GROUP (ORDER BY c.client_rtt_median_ns)) AS round_trip_ms
FROM timed t
LEFT JOIN connections c USING (run, connection)
GROUP BY t.broker
HAVING count(*) FILTER (WHERE NOT t.waits OR t.late_ns > 0) > 0
ORDER BY greatest(coalesce(p99_ms, 0), coalesce(late_p50_ms, 0)) DESC, t.broker
