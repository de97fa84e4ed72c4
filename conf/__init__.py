"""Settings files that ship with the distribution."""
