"""Items to rows of tables. No files, no Parquet, no Spark: whoever writes, these are the rows."""
