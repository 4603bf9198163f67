-- Which groups rebalanced, how long did it take, and why?
-- A row is a generation of a classic group, or an epoch of a consumer, share or streams group.
-- The time is from the first request that led to it to the last assignment.
SELECT
  group_id,
  protocol,
  generation,
  outcome,
  members,
  members_joined AS joined,
  members_left AS left,
  assignor,
  moment(began_ns) AS began,
  ms(duration_ns) AS took_ms,
  array_join(reasons, '; ') AS reasons,
  array_join(errors, ', ') AS errors
FROM groups
ORDER BY began_ns, group_id, generation, run, coordinator, protocol, connection, request_offset
