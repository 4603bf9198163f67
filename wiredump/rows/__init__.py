"""Turn items into rows of tables. No files, no Parquet, no Spark."""
