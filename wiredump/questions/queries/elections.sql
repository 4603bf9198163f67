-- Which leader elections were requested, and what came of them?
SELECT
  moment(requested_ns) AS requested,
  type,
  topic,
  partition,
  error,
  error_message,
  client_id
FROM elections
ORDER BY requested_ns, topic, partition, run, connection, request_offset
