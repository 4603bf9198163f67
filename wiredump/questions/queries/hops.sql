-- How long do packets take from one point of capture to the next?
-- A row is a connection that was captured twice. Translated: with other addresses, before and after a translation (NAT),
-- of which the questions count the exchanges once. Copied: its segments, on several interfaces; the time is an average.
WITH hops AS (
  SELECT
    t.run,
    t.connection,
    t.twin_of,
    f.direction,
    abs(f.first_ns - e.first_ns) AS took_ns
  FROM twins t
  JOIN frames f ON f.run = t.run AND f.connection = t.connection
  JOIN frames e
    ON e.run = t.run AND e.connection = t.twin_of AND e.direction = f.direction
    AND e.offset = f.offset
)
SELECT
  e.client,
  e.broker,
  'translated' AS how,
  l.client AS other_client,
  l.broker AS other_broker,
  count(*) AS pairs,
  ms(percentile_disc(0.5) WITHIN GROUP (ORDER BY h.took_ns)
    FILTER (WHERE h.direction = 'request')) AS request_ms,
  ms(percentile_disc(0.5) WITHIN GROUP (ORDER BY h.took_ns)
    FILTER (WHERE h.direction = 'response')) AS response_ms
FROM hops h
JOIN connections l ON l.run = h.run AND l.connection = h.connection
JOIN connections e ON e.run = h.run AND e.connection = h.twin_of
GROUP BY h.run, h.connection, e.client, e.broker, l.client, l.broker
UNION ALL
SELECT client, broker, 'copied', client, broker, copies, ms(copy_delay_ns), ms(copy_delay_ns)
FROM connections
WHERE copies > 0
ORDER BY client, broker, how, pairs DESC, other_client, other_broker
