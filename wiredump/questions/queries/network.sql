-- Which connections have trouble in the network?
SELECT
  client,
  broker,
  client_id,
  retransmitted,
  missing_bytes,
  out_of_order,
  zero_windows,
  resets,
  ms(greatest(client_rtt_max_ns, broker_rtt_max_ns)) AS longest_round_trip_ms,
  anomalies
FROM connections
WHERE retransmitted + missing_bytes + zero_windows + resets + anomalies > 0
ORDER BY retransmitted + zero_windows + resets DESC, missing_bytes DESC, client, run, connection
