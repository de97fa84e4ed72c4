"""One contract per table: columns, types, keys, constraints, version, a comment per column."""
