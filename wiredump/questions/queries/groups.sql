-- Which groups are in trouble?
-- Stuck: the last rebalance did not end well. Storm: five rebalances or more, at most a minute apart on average.
-- Restless: three or more. A cooperative assignor needs two rebalances for each change.
WITH numbered AS (
  SELECT
    *,
    row_number() OVER (
      PARTITION BY group_id, protocol
      ORDER BY began_ns DESC, generation DESC, run, coordinator, connection, request_offset
    ) AS place
  FROM groups
),
counted AS (
  SELECT
    group_id,
    protocol,
    count(*) AS rebalances,
    max(CASE WHEN place = 1 THEN outcome END) AS last_outcome,
    max(CASE WHEN place = 1 THEN members END) AS members,
    max(assignor) AS assignor,
    min(began_ns) AS first_ns,
    max(began_ns) AS last_ns,
    max(duration_ns) AS longest_ns,
    sum(members_left) AS members_left
  FROM numbered
  GROUP BY group_id, protocol
),
judged AS (
  SELECT
    *,
    CASE
      WHEN rebalances >= 5 AND last_ns - first_ns <= 60000000000 * rebalances THEN 0
      WHEN last_outcome = 'failed' OR last_outcome = 'in progress' THEN 1
      WHEN rebalances >= 3 THEN 2
      ELSE 3
    END AS rank
  FROM counted
)
SELECT
  group_id,
  protocol,
  CASE rank WHEN 0 THEN 'storm' WHEN 1 THEN 'stuck' WHEN 2 THEN 'restless' ELSE 'stable' END AS verdict,
  rebalances,
  last_outcome,
  members,
  members_left AS left,
  assignor,
  ms(longest_ns) AS longest_ms,
  moment(first_ns) AS first_seen,
  moment(last_ns) AS last_seen
FROM judged
ORDER BY rank, rebalances DESC, group_id, protocol
