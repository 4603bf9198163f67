-- Which clients and versions are in use?
-- An upgrade breaks a client whose highest version the new release no longer has; `wiredump audit` judges releases.
SELECT
  max(software_name) AS software,
  max_by(software_version, (software_name, software_version))
    FILTER (WHERE software_name IS NOT NULL AND software_version IS NOT NULL) AS version,
  client_id,
  api,
  min(api_version) AS lowest,
  max(api_version) AS highest,
  count(*) AS requests
FROM requests
WHERE api IS NOT NULL
GROUP BY client_id, api
ORDER BY client_id NULLS LAST, api
