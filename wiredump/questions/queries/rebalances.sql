-- Which groups rebalanced, how long did it take, and why?
-- A row is a generation of a classic group, or a member epoch of a consumer group (KIP-848).
-- The time is from the first request that led to it to the last answer that names it.
WITH answered AS (
  SELECT
    r.api,
    r.client_id,
    r.requested_ns,
    r.responded_ns,
    q.body::JSON AS request,
    a.body::JSON AS response
  FROM requests r
  JOIN bodies q ON q.run = r.run AND q.connection = r.connection AND q.direction = 'request'
    AND q."offset" = r.request_offset
  JOIN bodies a ON a.run = r.run AND a.connection = r.connection AND a.direction = 'response'
    AND a."offset" = r.response_offset
  WHERE r.api IN ('JoinGroup', 'ConsumerGroupHeartbeat') AND q.body IS NOT NULL AND a.body IS NOT NULL
),
steps AS (
  SELECT
    request->>'groupId' AS group_id,
    if(api = 'JoinGroup', 'classic', 'consumer') AS protocol,
    CAST(coalesce(response->>'generationId', response->>'memberEpoch') AS INTEGER) AS generation,
    coalesce(response->>'memberId', request->>'memberId') AS member,
    coalesce(response->>'protocolName', request->>'serverAssignor') AS assignor,
    nullif(request->>'reason', '') AS reason,
    requested_ns,
    responded_ns,
    row_number() OVER (
      PARTITION BY request->>'groupId', api, coalesce(response->>'memberId', request->>'memberId'),
        coalesce(response->>'generationId', response->>'memberEpoch')
      ORDER BY responded_ns
    ) AS repeated
  FROM answered
  WHERE coalesce(response->>'errorCode', '0') = '0'
)
SELECT
  group_id,
  protocol,
  generation,
  count(DISTINCT member) AS members,
  any_value(assignor) AS assignor,
  moment(min(requested_ns)) AS began,
  ms(max(responded_ns) - min(requested_ns)) AS took_ms,
  string_agg(DISTINCT reason, '; ') AS reasons
FROM steps
WHERE generation > 0 AND repeated = 1
GROUP BY group_id, protocol, generation
ORDER BY group_id, protocol, generation
