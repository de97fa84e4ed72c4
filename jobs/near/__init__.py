"""The stages of near_dedup on DataFrames, each a pure function."""
