-- Which clients send and receive most bytes?
SELECT
  regexp_replace(client, ':[0-9]+$', '') AS host,
  client_id,
  max(software_name) AS software,
  count(*) AS connections,
  sum(requests) AS requests,
  sum(request_bytes) AS sent_bytes,
  sum(response_bytes) AS received_bytes
FROM connections
GROUP BY host, client_id
ORDER BY sent_bytes + received_bytes DESC, host, client_id
