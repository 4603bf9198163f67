-- Which partitions were reassigned, and how did it end?
SELECT
  topic,
  partition,
  outcome,
  before,
  target,
  moment(asked_ns) AS asked,
  ms(ended_ns - asked_ns) AS took_ms,
  error,
  client_id
FROM reassignments
ORDER BY asked_ns, topic, partition, run, cluster, connection, request_offset, ended_ns
