-- Which attempts to connect failed, and how did they end?
-- A row is a client's host and a broker. Refused: a reset answered the SYN. Unanswered: nothing did.
-- Half open: the client did not acknowledge the SYN-ACK. Reset unused: the connection opened, and was reset before any byte.
SELECT
  client_host,
  broker,
  outcome,
  count(*) AS attempts,
  sum(syns) AS syns,
  moment(min(opened_ns)) AS first_seen,
  moment(max(opened_ns)) AS last_seen
FROM (
  SELECT
    regexp_extract(client, '^(.*):[0-9]+$', 1) AS client_host,
    broker,
    opened_ns,
    syns,
    CASE
      WHEN syn_acks = 0 AND closed_with = 'reset' THEN 'refused'
      WHEN syn_acks = 0 THEN 'unanswered'
      WHEN handshake_ns IS NULL THEN 'half open'
      ELSE 'reset unused'
    END AS outcome
  FROM connections
  WHERE syns > 0 AND request_bytes + response_bytes + missing_bytes + anomalies = 0
    AND (syn_acks = 0 OR handshake_ns IS NULL OR closed_with = 'reset')
)
GROUP BY client_host, broker, outcome
ORDER BY attempts DESC, client_host, broker, outcome
