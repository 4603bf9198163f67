-- Which clients ask for metadata too often?
-- Storm: at least 20 requests in one second. Of all topics: requests without a list of topics, of which a response has every one.
WITH asked AS (
  SELECT
    r.client_id,
    r.requested_ns,
    CAST(floor(r.requested_ns / 1000000000.0) AS BIGINT) AS second,
    b.body LIKE '%"topics":null%' OR (r.api_version = 0 AND b.body LIKE '%"topics":[]%') AS of_all,
    r.response_size
  FROM requests r
  LEFT JOIN bodies b
    ON b.run = r.run AND b.connection = r.connection AND b.offset = r.request_offset
    AND b.direction = 'request'
  WHERE r.api = 'Metadata' AND r.requested_ns IS NOT NULL
),
counted AS (
  SELECT
    client_id,
    second,
    count(*) AS requests,
    count(*) FILTER (WHERE of_all) AS of_all,
    sum(response_size) AS bytes,
    min(requested_ns) AS first_ns
  FROM asked
  GROUP BY client_id, second
)
SELECT
  client_id,
  CASE WHEN max(requests) >= 20 THEN 'storm' ELSE 'usual' END AS verdict,
  sum(requests) AS requests,
  sum(of_all) AS of_all_topics,
  max(requests) AS most_a_second,
  moment(min_by(first_ns, (-requests, second))) AS busiest,
  coalesce(sum(bytes), 0) AS received_bytes
FROM counted
GROUP BY client_id
ORDER BY most_a_second DESC, requests DESC, client_id
