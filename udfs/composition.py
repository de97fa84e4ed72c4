"""The kernel under both normalisations: map every code point, then bring the text into Normalization Form C.

A mapping (``unicode_tables.MappingTables``) gives each code point a string; the result is NFC of all those strings in
a row (Unicode Standard Annex #15). The work is done in one walk over the UTF-8 bytes. Nearly all code points of real
text map to something that starts with a starter which never combines backwards: that is written at once, and the walk
remembers where (a *boundary*). Only when a character comes that may combine or stand out of order is the stretch from
the last boundary to the next one taken apart, ordered and composed anew (the quick check of UAX #15, section 9, with a
bounded step back). No stretch is walked more than twice, so time is linear even for a million marks on one letter.

The output buffer never has to be sized for the worst case: the walk stops at a boundary when there is no room left, the
caller enlarges the buffer, and it goes on from there.
"""

from __future__ import annotations

import numpy as np

from udfs.compiled import compiled
from udfs.unicode_tables import (
    CASE_IGNORABLE,
    CASED,
    CLASS_MASK,
    COMBINES_BACK,
    COMBINING_CLASS,
    FAST,
    HANGUL,
    LONGEST_COMPOSED,
    MARK,
    REMOVED,
    SIGMA,
    SINGLE,
    CompositionTables,
    MappingTables,
    combining_properties,
    record_of,
)
from udfs.utf8 import LONGEST, all_ascii, decode, encode, encoded_length

BLOCK = 32
"""Bytes of ASCII that are checked and lower-cased together, as the processor's vectors do it."""

SCRATCH_CODES = 1024
"""Code points of the scratch array that callers pass; a longer stretch gets an array of its own."""

FINAL_SIGMA = 0x03C2
IOTA_SUBSCRIPT = 0x0345

# Hangul syllables by arithmetic: The Unicode Standard, section 3.12.
SYLLABLES, LEADS, VOWELS, FINALS = 0xAC00, 0x1100, 0x1161, 0x11A7
LEAD_COUNT, VOWEL_COUNT, FINAL_COUNT = 19, 21, 28
SYLLABLE_COUNT = LEAD_COUNT * VOWEL_COUNT * FINAL_COUNT

SORTED_BY_INSERTION = 16
"""Marks in a row up to which insertion beats counting; real text rarely has more than three."""


@compiled
def map_and_compose(
    values: np.ndarray,
    start: int,
    position: int,
    end: int,
    out: np.ndarray,
    written: int,
    mapping: MappingTables,
    composition: CompositionTables,
    scratch: np.ndarray,
) -> tuple[int, int, int]:
    """Map and compose one document, as far as the output has room.

    Args:
        values: uint8[], UTF-8; malformed parts read as U+FFFD.
        start: where the document starts in ``values``.
        position: where to go on: ``start``, or what an earlier call returned.
        end: where the document ends.
        out: uint8[], the output.
        written: how much of ``out`` is in use.
        mapping: what each code point becomes.
        composition: canonical order and composition.
        scratch: int32[], working space.

    Returns:
        The position to go on from (``end``: all is done), how much of ``out`` is in use, and a number of free bytes
        after which the walk will get on.
    """
    size = out.size
    boundary = position
    boundary_written = written
    last_class = 0
    while position < end:
        if values[position] < 0x80:
            room = size - written
            if room == 0:
                return position, written, BLOCK
            position, written = _copy_ascii(values, position, min(end, position + room), out, written)
            boundary = position - 1
            boundary_written = written - 1
            last_class = 0
            continue
        code, length = decode(values, position, end)
        record = record_of(mapping, code)
        flags = np.int64(mapping.flags[record])
        if flags & FAST:
            if written + LONGEST_COMPOSED > size:
                return position, written, LONGEST_COMPOSED
            boundary = position
            boundary_written = written
            last_class = flags & CLASS_MASK
            if flags & SINGLE:
                result = code + np.int64(mapping.delta[record])
                if flags & SIGMA and _is_final(values, start, position, end, mapping):
                    result = FINAL_SIGMA
                written = encode(out, written, result)
            else:
                for index in range(mapping.composed_start[record], mapping.composed_end[record]):
                    written = encode(out, written, np.int64(mapping.sequences[index]))
            position += length
        elif flags & REMOVED:
            position += length
        elif flags & MARK and (flags & CLASS_MASK) >= last_class:
            if written + LONGEST > size:
                return boundary, boundary_written, written - boundary_written + LONGEST
            last_class = flags & CLASS_MASK
            written = encode(out, written, code)
            position += length
        else:
            stop, codes = _measure_stretch(values, boundary, position, end, mapping)
            written, needed = _compose_stretch(
                values, start, boundary, stop, end, codes, out, boundary_written, mapping, composition, scratch
            )
            if needed:
                return boundary, boundary_written, needed
            position = stop
    return end, written, 0


@compiled
def with_room(buffer: np.ndarray, used: int, room: int) -> np.ndarray:
    """Return a larger copy of ``buffer`` (its first ``used`` entries) with at least ``room`` free entries."""
    larger = np.empty(max(used + room, buffer.size + buffer.size // 2) + 64, buffer.dtype)
    larger[:used] = buffer[:used]
    return larger


@compiled
def _copy_ascii(values: np.ndarray, position: int, end: int, out: np.ndarray, written: int) -> tuple[int, int]:
    """Lower-case ASCII into ``out`` until another byte or ``end`` comes; the first byte must be ASCII."""
    while position + BLOCK <= end and all_ascii(values, position, position + BLOCK):
        for step in range(BLOCK):
            byte = values[position + step]
            out[written + step] = byte + np.uint8(32) * np.uint8(np.uint8(byte - np.uint8(65)) < 26)
        position += BLOCK
        written += BLOCK
    stop = min(end, position + BLOCK)
    while position < stop and values[position] < 0x80:
        byte = values[position]
        out[written] = byte + np.uint8(32) * np.uint8(np.uint8(byte - np.uint8(65)) < 26)
        position += 1
        written += 1
    return position, written


@compiled
def _measure_stretch(
    values: np.ndarray, boundary: int, position: int, end: int, mapping: MappingTables
) -> tuple[int, int]:
    """Return where the stretch that starts at ``boundary`` ends, and its number of decomposed code points.

    The stretch goes on past ``position`` (a character that needs care) up to the next boundary.
    """
    codes = 0
    here = boundary
    while here < end:
        code, length = decode(values, here, end)
        record = record_of(mapping, code)
        flags = np.int64(mapping.flags[record])
        if here > position and flags & FAST:
            break
        expanded = np.int64(mapping.expanded_end[record]) - np.int64(mapping.expanded_start[record])
        codes += 3 if flags & HANGUL else max(expanded, 1)
        here += length
    return here, codes


@compiled
def _compose_stretch(
    values: np.ndarray,
    start: int,
    boundary: int,
    stop: int,
    end: int,
    codes: int,
    out: np.ndarray,
    written: int,
    mapping: MappingTables,
    composition: CompositionTables,
    scratch: np.ndarray,
) -> tuple[int, int]:
    """Decompose, order, compose and write ``values[boundary:stop]``.

    Returns:
        How much of ``out`` is in use and 0; or, if there is no room, ``written`` and the number of bytes needed.
    """
    work = scratch if codes <= scratch.size else np.empty(codes, np.int32)
    count = _decompose(values, start, boundary, stop, end, work, mapping)
    _order_marks(work, count, composition)
    if mapping.iota != IOTA_SUBSCRIPT:
        for index in range(count):
            if work[index] == IOTA_SUBSCRIPT:
                work[index] = mapping.iota
    count = _compose(work, count, composition)
    needed = 0
    for index in range(count):
        needed += encoded_length(work[index])
    if written + needed > out.size:
        return written, needed
    for index in range(count):
        written = encode(out, written, np.int64(work[index]))
    return written, 0


@compiled
def _decompose(
    values: np.ndarray, start: int, boundary: int, stop: int, end: int, work: np.ndarray, mapping: MappingTables
) -> int:
    """Write the decomposed results of ``values[boundary:stop]`` into ``work``, and return their number."""
    count = 0
    position = boundary
    while position < stop:
        code, length = decode(values, position, stop)
        record = record_of(mapping, code)
        flags = np.int64(mapping.flags[record])
        first = np.int64(mapping.expanded_start[record])
        last = np.int64(mapping.expanded_end[record])
        if flags & HANGUL:
            syllable = code - SYLLABLES
            work[count] = LEADS + syllable // (VOWEL_COUNT * FINAL_COUNT)
            work[count + 1] = VOWELS + syllable % (VOWEL_COUNT * FINAL_COUNT) // FINAL_COUNT
            count += 2
            if syllable % FINAL_COUNT:
                work[count] = FINALS + syllable % FINAL_COUNT
                count += 1
        elif flags & SIGMA and _is_final(values, start, position, end, mapping):
            work[count] = FINAL_SIGMA
            count += 1
        elif last > first:
            for index in range(first, last):
                work[count] = mapping.sequences[index]
                count += 1
        elif not flags & REMOVED:
            work[count] = code + mapping.delta[record]
            count += 1
        position += length
    return count


@compiled
def _order_marks(work: np.ndarray, count: int, composition: CompositionTables) -> None:
    """Bring ``work[:count]`` into canonical order: runs of non-starters by combining class, stably (D109)."""
    index = 0
    while index < count:
        if combining_properties(composition, work[index]) & COMBINING_CLASS == 0:
            index += 1
            continue
        first = index
        while index < count and combining_properties(composition, work[index]) & COMBINING_CLASS:
            index += 1
        if index - first <= SORTED_BY_INSERTION:
            for taken in range(first + 1, index):
                mark = work[taken]
                mark_class = combining_properties(composition, mark) & COMBINING_CLASS
                place = taken
                while (
                    place > first and combining_properties(composition, work[place - 1]) & COMBINING_CLASS > mark_class
                ):
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
        places[(combining_properties(composition, work[index]) & COMBINING_CLASS) + 1] += 1
    for mark_class in range(1, places.size):
        places[mark_class] += places[mark_class - 1]
    marks = work[first:last].copy()
    for index in range(marks.size):
        mark_class = combining_properties(composition, marks[index]) & COMBINING_CLASS
        work[first + places[mark_class]] = marks[index]
        places[mark_class] += 1


@compiled
def _compose(work: np.ndarray, count: int, composition: CompositionTables) -> int:
    """Compose ``work[:count]``, decomposed and in order, in place (D117), and return the new number of code points."""
    starter = -1
    # -1: nothing stands between the starter and the next code point; else the class of the last one kept between them.
    last_class = -1
    kept = 0
    for index in range(count):
        code = np.int64(work[index])
        properties = combining_properties(composition, code)
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
    key = first << 32 | second
    low = 0
    high = composition.pair_keys.size
    while low < high:
        middle = (low + high) >> 1
        if composition.pair_keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < composition.pair_keys.size and composition.pair_keys[low] == key:
        return np.int64(composition.pair_values[low])
    return 0


@compiled
def _is_final(values: np.ndarray, start: int, position: int, end: int, mapping: MappingTables) -> bool:
    """Say whether the capital sigma at ``position`` stands at the end of a word (Final_Sigma, table 3-17).

    That is: a cased letter before it, none after it, looking across case-ignorables. Each of these is crossed at most twice
    in a document, because a sigma is cased itself.
    """
    here = position
    cased_before = False
    while here > start:
        lead = here - 1
        while lead > start and lead > here - LONGEST and values[lead] & 0xC0 == 0x80:
            lead -= 1
        code, length = decode(values, lead, here)
        # A lead byte whose sequence ends earlier was followed by a stray byte, which reads as U+FFFD.
        flags = np.int64(mapping.flags[record_of(mapping, code)]) if lead + length == here else 0
        if not flags & CASE_IGNORABLE:
            cased_before = flags & CASED != 0
            break
        here = lead
    if not cased_before:
        return False
    here = position + 2
    while here < end:
        code, length = decode(values, here, end)
        flags = np.int64(mapping.flags[record_of(mapping, code)])
        if not flags & CASE_IGNORABLE:
            return flags & CASED == 0
        here += length
    return True
