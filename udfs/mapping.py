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
from udfs.composition import FINAL_COUNT, FINALS, LEADS, SYLLABLES, VOWEL_COUNT, VOWELS, compose, order_marks
from udfs.unicode_tables import (
    CASE_IGNORABLE,
    CASED,
    CLASS_MASK,
    COMPOSED_END,
    COMPOSED_START,
    DELTA,
    EXPANDED_END,
    EXPANDED_START,
    FAST,
    HANGUL,
    LONGEST_COMPOSED,
    MARK,
    REMOVED,
    ROW,
    SIGMA,
    SINGLE,
    CompositionTables,
    MappingTables,
    entry,
    lookup,
)
from udfs.utf8 import LONGEST, decode, encode, encoded_length

BLOCK = 64
"""Bytes of ASCII that are checked and lower-cased together, as the processor's vectors do it."""

SCRATCH_CODES = 1024
"""Code points of the scratch array that callers pass; a longer stretch gets an array of its own."""

FINAL_SIGMA = 0x03C2
IOTA_SUBSCRIPT = 0x0345


@compiled
def append_document(
    values: np.ndarray,
    start: int,
    end: int,
    out: np.ndarray,
    written: int,
    mapping: MappingTables,
    composition: CompositionTables,
    scratch: np.ndarray,
) -> tuple[np.ndarray, int]:
    """Map and compose ``values[start:end]``, and append it to ``out[:written]``.

    Args and errors are those of ``map_and_compose``.

    Returns:
        The output, which is another array if ``out`` was too short, and how much of it is in use.
    """
    position = start
    while position < end:
        position, written, room = map_and_compose(
            values, start, position, end, out, written, mapping, composition, scratch
        )
        if position < end:
            out = with_room(out, written, room)
    return out, written


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
        row = ROW * lookup(mapping.records, code)
        flags = entry(mapping, row)
        if flags & FAST:
            if written + LONGEST_COMPOSED > size:
                return position, written, LONGEST_COMPOSED
            boundary = position
            boundary_written = written
            last_class = flags & CLASS_MASK
            if flags & SINGLE:
                result = code + entry(mapping, row + DELTA)
                if flags & SIGMA and _is_final(values, start, position, end, mapping):
                    result = FINAL_SIGMA
                written = encode(out, written, result)
            else:
                for index in range(entry(mapping, row + COMPOSED_START), entry(mapping, row + COMPOSED_END)):
                    written = encode(out, written, entry(mapping, index))
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
    # Slices are indexed from 0 by loop counters, which the compiler knows not to be negative: only then it uses
    # vectors.
    source = values[position:end]
    target = out[written : written + source.size]
    done = 0
    while done + BLOCK <= source.size:
        block = source[done : done + BLOCK]
        lowered = target[done : done + BLOCK]
        seen = np.uint8(0)
        for index in range(BLOCK):
            byte = block[index]
            seen |= byte
            lowered[index] = lower_ascii(byte)
        if seen >= 0x80:
            break
        done += BLOCK
    stop = min(source.size, done + BLOCK)
    while done < stop and source[done] < 0x80:
        target[done] = lower_ascii(source[done])
        done += 1
    return position + done, written + done


@compiled
def lower_ascii(byte: np.uint8) -> np.uint8:
    """Return the lower case of an ASCII letter, and any other byte as it is."""
    return byte | np.uint8(0x20) if np.uint8(byte - np.uint8(65)) < np.uint8(26) else byte


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
        row = ROW * lookup(mapping.records, code)
        flags = entry(mapping, row)
        if here > position and flags & FAST:
            break
        expanded = entry(mapping, row + EXPANDED_END) - entry(mapping, row + EXPANDED_START)
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
    order_marks(work, count, composition)
    if mapping.iota != IOTA_SUBSCRIPT:
        for index in range(count):
            if work[index] == IOTA_SUBSCRIPT:
                work[index] = mapping.iota
    count = compose(work, count, composition)
    needed = 0
    for index in range(count):
        needed += encoded_length(work[index])
    if written + needed > out.size:
        return written, needed
    for index in range(count):
        written = encode(out, written, work[index])
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
        row = ROW * lookup(mapping.records, code)
        flags = entry(mapping, row)
        first = entry(mapping, row + EXPANDED_START)
        last = entry(mapping, row + EXPANDED_END)
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
                work[count] = mapping.entries[index]
                count += 1
        elif not flags & REMOVED:
            work[count] = code + entry(mapping, row + DELTA)
            count += 1
        position += length
    return count


@compiled
def _is_final(values: np.ndarray, start: int, position: int, end: int, mapping: MappingTables) -> bool:
    """Say whether the capital sigma at ``position`` stands at the end of a word (Final_Sigma, table 3-17).

    That is: a cased letter before it, none after it, looking across case-ignorables. Each of these is crossed at most
    twice in a document, because a sigma is cased itself.
    """
    here = position
    cased_before = False
    while here > start:
        lead = here - 1
        while lead > start and lead > here - LONGEST and values[lead] & 0xC0 == 0x80:
            lead -= 1
        code, length = decode(values, lead, here)
        # A lead byte whose sequence ends earlier was followed by a stray byte, which reads as U+FFFD.
        flags = entry(mapping, ROW * lookup(mapping.records, code)) if lead + length == here else 0
        if not flags & CASE_IGNORABLE:
            cased_before = flags & CASED != 0
            break
        here = lead
    if not cased_before:
        return False
    here = position + 2
    while here < end:
        code, length = decode(values, here, end)
        flags = entry(mapping, ROW * lookup(mapping.records, code))
        if not flags & CASE_IGNORABLE:
            return flags & CASED == 0
        here += length
    return True
