"""Who a client is (SASL), and what it may do (access rules)."""
