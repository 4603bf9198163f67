-- Which clients and versions are in use?
-- An upgrade breaks a client whose highest version the new release no longer has; `wiredump audit` judges releases.
SELECT
  any_value(software_name) AS software,
  any_value(software_version) AS version,
  client_id,
  api,
  min(api_version) AS lowest,
  max(api_version) AS highest,
  count(*) AS requests
FROM requests
WHERE api IS NOT NULL
GROUP BY client_id, api
ORDER BY client_id, api
