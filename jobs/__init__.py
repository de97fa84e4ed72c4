"""Corpus Weir: jobs over Delta tables that turn raw text into a pre-training mix.

One module per job; ``jobs.runtime`` is what they share. Distribution ``corpus-weir``, command ``weir``.
"""

__version__ = "0.1.0"
