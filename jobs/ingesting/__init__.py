"""Parts of the ingest job: finding files, reading records, giving ids."""
