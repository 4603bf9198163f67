-- Which errors occurred, and who got them?
SELECT
  error,
  api,
  client_id,
  count(*) AS responses,
  moment(min(responded_ns)) AS first_seen,
  moment(max(responded_ns)) AS last_seen
FROM (SELECT explode(errors) AS error, api, client_id, responded_ns FROM requests)
WHERE error <> 'NONE'
GROUP BY error, api, client_id
ORDER BY responses DESC, error, api, client_id
