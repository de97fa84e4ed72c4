"""Parts of quality_filter: its settings, the judging of documents, samples for people to read, the preview."""
