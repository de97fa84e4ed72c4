"""Annotators: what one pass over the text computes for each document."""
