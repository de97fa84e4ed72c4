"""The values behind the published quality rules of Gopher, C4 and FineWeb, and these rules.

``measures`` computes all values of a text, with the kernels of ``reading`` (words and lines, in one walk over the
bytes), ``stop_words`` and ``repetition``. ``rule_sets`` holds the published rules as SQL conditions.
"""
