"""Canonical order and canonical composition of code points: the second half of Normalization Form C.

The definitions are those of The Unicode Standard, section 3.11 (D109, D117), and 3.12 for Hangul syllables. Both kernels
are linear in the number of code points, however many marks stand on one letter.
"""

from __future__ import annotations

import numpy as np

from udfs.compiled import compiled
from udfs.unicode_tables import COMBINES_BACK, COMBINING_CLASS, PAIR_BITS, PAIR_MASK, CompositionTables, lookup

# Hangul syllables by arithmetic: The Unicode Standard, section 3.12.
SYLLABLES, LEADS, VOWELS, FINALS = 0xAC00, 0x1100, 0x1161, 0x11A7
LEAD_COUNT, VOWEL_COUNT, FINAL_COUNT = 19, 21, 28
SYLLABLE_COUNT = LEAD_COUNT * VOWEL_COUNT * FINAL_COUNT

SORTED_BY_INSERTION = 16
"""Marks in a row up to which insertion beats counting; real text rarely has more than three."""


@compiled
def order_marks(work: np.ndarray, count: int, composition: CompositionTables) -> None:
    """Bring ``work[:count]`` into canonical order: runs of non-starters by combining class, stably (D109)."""
    index = 0
    while index < count:
        if lookup(composition.properties, work[index]) & COMBINING_CLASS == 0:
            index += 1
            continue
        first = index
        while index < count and lookup(composition.properties, work[index]) & COMBINING_CLASS:
            index += 1
        if index - first <= SORTED_BY_INSERTION:
            for taken in range(first + 1, index):
                mark = work[taken]
                mark_class = lookup(composition.properties, mark) & COMBINING_CLASS
                place = taken
                while place > first and lookup(composition.properties, work[place - 1]) & COMBINING_CLASS > mark_class:
                    work[place] = work[place - 1]
                    place -= 1
                work[place] = mark
        else:
            _order_by_counting(work, first, index, composition)


@compiled
def _order_by_counting(work: np.ndarray, first: int, last: int, composition: CompositionTables) -> None:
    """Order ``work[first:last]`` by combining class in linear time, stably."""
    places = np.zeros(COMBINING_CLASS + 2, np.int64)
    for index in range(first, last):
        places[(lookup(composition.properties, work[index]) & COMBINING_CLASS) + 1] += 1
    for mark_class in range(1, places.size):
        places[mark_class] += places[mark_class - 1]
    marks = work[first:last].copy()
    for index in range(marks.size):
        mark_class = lookup(composition.properties, marks[index]) & COMBINING_CLASS
        work[first + places[mark_class]] = marks[index]
        places[mark_class] += 1


@compiled
def compose(work: np.ndarray, count: int, composition: CompositionTables) -> int:
    """Compose ``work[:count]``, decomposed and in order, in place (D117), and return the new number of code points."""
    starter = -1
    # -1: nothing stands between the starter and the next code point; else the class of the last one kept between them.
    last_class = -1
    kept = 0
    for index in range(count):
        code = np.int64(work[index])
        properties = lookup(composition.properties, code)
        mark_class = properties & COMBINING_CLASS
        if starter >= 0 and properties & COMBINES_BACK and last_class < mark_class:
            composite = _composite(np.int64(work[starter]), code, composition)
            if composite:
                work[starter] = composite
                continue
        if mark_class == 0:
            starter = kept
            last_class = -1
        else:
            last_class = mark_class
        work[kept] = code
        kept += 1
    return kept


@compiled
def _composite(first: int, second: int, composition: CompositionTables) -> int:
    """Return the primary composite of two code points, or 0."""
    if VOWELS <= second < VOWELS + VOWEL_COUNT:
        if LEADS <= first < LEADS + LEAD_COUNT:
            return SYLLABLES + ((first - LEADS) * VOWEL_COUNT + second - VOWELS) * FINAL_COUNT
        return 0
    if FINALS < second < FINALS + FINAL_COUNT:
        if SYLLABLES <= first < SYLLABLES + SYLLABLE_COUNT and (first - SYLLABLES) % FINAL_COUNT == 0:
            return first + second - FINALS
        return 0
    key = first << PAIR_BITS | second
    low = 0
    high = composition.pairs.size
    while low < high:
        middle = (low + high) >> 1
        if composition.pairs[middle] >> PAIR_BITS < key:
            low = middle + 1
        else:
            high = middle
    if low < composition.pairs.size and composition.pairs[low] >> PAIR_BITS == key:
        return composition.pairs[low] & PAIR_MASK
    return 0
