"""Great Expectations suites: integrity and coverage, and the custom expectations they are made of."""
