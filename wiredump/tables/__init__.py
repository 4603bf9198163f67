"""Tables as Parquet files, written by one process. Needs the extra ``tables`` (pyarrow)."""
