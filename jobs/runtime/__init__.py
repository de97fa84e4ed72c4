"""What every job shares: settings, session, tables, run records, errors, progress, the command line."""
