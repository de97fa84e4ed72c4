"""What every text classifier shares: how a text is prepared, which texts can be judged at all, and what a score is.

The preparation is the same where a classifier is trained and where it is applied, else its scores would mean nothing.
"""

from __future__ import annotations

import string
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from udfs.arrow_text import Texts, text_array, text_buffers

NO_TEXT_TO_SCORE = "no_text_to_score"
"""Why a text has no score: it holds no letter of any script. A classifier would still answer, and with confidence:
fastText gives the mark for the end of a line, all that an empty text has, a language learnt in training."""

SCORE_DECIMALS = 6
"""Scores are rounded when they are written, so that a last digit can't decide who survives."""

END_OF_LINE = "</s>"
LABEL_PREFIX = "__label__"
BROKEN_UP = {END_OF_LINE: "< /s>", LABEL_PREFIX: "_label_"}

SPACES = bytes.maketrans(b"\n", b" ")
SPACES_AND_LOWER_CASE = bytes.maketrans(b"\n" + string.ascii_uppercase.encode(), b" " + string.ascii_lowercase.encode())

Predict = Callable[[list[str]], tuple[list[list[str]], list[list[float]]]]
"""Prepared texts to their labels, most probable first, and the labels' probabilities."""


def prepared(texts: Texts, *, fold_case: bool, characters: int | None) -> pa.Array:
    """The copies of texts that a classifier reads; the stored texts stay as they are.

    - Only the first ``characters`` code points are read (None: all). So a document of 100 MB costs no more than a book.
    - Line feeds become spaces: fastText refuses a text of several lines.
    - Lower case, with ``fold_case``: to a model that learnt on normal text, words in capitals are unknown ones.
    - fastText's own marks are broken up, whatever the model: it would end a text at the word ``</s>``, and take words
      that begin with ``__label__`` for labels in training, and leave them out afterwards.

    Args:
        texts: n strings, nulls allowed, sliced or chunked.
        fold_case: Whether to lower the case of letters.
        characters: Code points to read, at least 1.

    Returns:
        n strings (``large_string``); null where the text is null.
    """
    found = pa.chunked_array(texts).combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    found = found.cast(pa.large_string())
    if characters is not None:
        longer = pc.fill_null(pc.greater(pc.binary_length(found), characters), False)  # in bytes: at least those
        if pc.any(longer).as_py():
            found = pc.replace_with_mask(found, longer, pc.utf8_slice_codeunits(found.filter(longer), 0, characters))
    held, offsets, valid = text_buffers(found)
    read = held[offsets[0] : offsets[-1]].tobytes()
    # One pass over all bytes instead of one per replacement: beside a small model these cost a fifth of the time.
    in_ascii = read.isascii()
    read = read.translate(SPACES_AND_LOWER_CASE if fold_case else SPACES)
    copies = text_array(np.frombuffer(read, np.uint8), offsets - offsets[0], valid, like=pa.large_string())
    if fold_case and not in_ascii:
        wider = pc.fill_null(pc.less(pc.utf8_length(copies), pc.binary_length(copies)), False)
        copies = pc.replace_with_mask(copies, wider, pc.utf8_lower(copies.filter(wider)))
        read = text_buffers(copies).values.tobytes()
    for mark, instead in BROKEN_UP.items():
        if mark.encode() in read:
            copies = pc.replace_substring(copies, mark, instead)
    return copies


def can_be_scored(texts: pa.Array) -> pa.BooleanArray:
    """Which texts hold a letter (general category L*) of any script: n booleans, false where the text is null."""
    return pc.fill_null(pc.match_substring_regex(texts, r"\p{L}"), False)


def as_scores(values: np.ndarray) -> np.ndarray:
    """Probabilities as they are stored: between 0 and 1, six decimals; NaN stays NaN.

    fastText's rounding gives 1.0000054 and the like (issues 455, 718 and 748 of facebookresearch/fastText).
    """
    return np.round(np.clip(np.asarray(values, np.float64), 0.0, 1.0), SCORE_DECIMALS)


def scattered(mask: pa.BooleanArray, values: pa.Array) -> pa.Array:
    """Values of the texts that were scored, back in their rows; null in the others.

    Args:
        mask: n booleans.
        values: As many values as ``mask`` has true ones, in their order.
    """
    chosen = mask.to_numpy(zero_copy_only=False).astype(np.bool_)
    places = np.where(chosen, np.cumsum(chosen) - 1, 0)
    return values.take(pa.array(places, pa.int64(), mask=~chosen)) if len(values) else pa.nulls(len(mask), values.type)


def unscored(mask: pa.BooleanArray) -> pa.Array:
    """The reason why a text has no score, null where it has one."""
    return pc.if_else(mask, pa.scalar(None, pa.string()), pa.scalar(NO_TEXT_TO_SCORE))
