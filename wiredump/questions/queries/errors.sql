-- Which errors occurred, where, and who got them?
-- A row without a topic is about the whole request. Steps of a handshake come last: a client is to join again
-- with the member id that it was given, or to use another version of ApiVersions.
SELECT
  split_part(found, '/', 1) AS error,
  api,
  broker,
  nullif(coalesce(topics.topic, split_part(found, '/', 2)), '') AS topic,
  nullif(split_part(found, '/', 3), '') AS partition,
  client_id,
  count(*) AS responses,
  moment(min(responded_ns)) AS first_seen,
  moment(max(responded_ns)) AS last_seen,
  found LIKE 'MEMBER_ID_REQUIRED/%'
    OR (api = 'ApiVersions' AND found LIKE 'UNSUPPORTED_VERSION/%') AS handshake
FROM (
  SELECT
    r.run,
    r.api,
    r.broker,
    r.client_id,
    r.responded_ns,
    explode(CASE WHEN b.body IS NULL THEN r.errors ELSE partition_errors(b.body) END) AS found
  FROM requests r
  LEFT JOIN bodies b
    ON b.run = r.run AND b.connection = r.connection AND b.offset = r.response_offset
    AND b.direction = 'response'
  WHERE array_size(r.errors) > 0 AND array_join(r.errors, ',') <> 'NONE'
) e
LEFT JOIN topics ON topics.run = e.run AND topics.topic_id = split_part(found, '/', 2)
WHERE found <> 'NONE'
GROUP BY found, topics.topic, api, broker, client_id
ORDER BY handshake, responses DESC, error, topic, partition, api, broker, client_id
