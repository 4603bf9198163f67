-- Which clients send and receive most bytes?
SELECT
  regexp_replace(client, ':[0-9]+$', '') AS host,
  client_id,
  max(software_name) AS software,
  count(*) AS connections,
  sum(requests) AS requests,
  sum(request_bytes) AS sent_bytes,
  sum(response_bytes) AS received_bytes
FROM connections c
WHERE NOT EXISTS (SELECT 1 FROM twins t WHERE t.run = c.run AND t.connection = c.connection)
GROUP BY host, client_id
ORDER BY sent_bytes + received_bytes DESC, host, client_id
