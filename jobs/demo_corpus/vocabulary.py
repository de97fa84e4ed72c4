"""Synthetic vocabularies of four languages, made of syllables by the seed, the most frequent words first.

The first words of each language are its real function words, so that language identification and stop-word rules have
something to hold on to; all the others are invented. Frequencies follow the Zipf-Mandelbrot law with exponent 1,
weight(rank) = 1 / (rank + 3) for rank = 0, 1, ... (Mandelbrot 1953), in integer arithmetic, hence the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from jobs.demo_corpus.randomness import Draws

VOCABULARY_SIZE = 32_768
"""Different words of each language."""

FUNCTION_WORDS = 40
"""Ranks below this hold the function words, which every source uses alike."""

SAMPLING_BITS = 18
"""A sampling table has 2^18 entries; a word's number of entries, by 2^18, is its probability."""

_MANDELBROT_SHIFT = 3


@dataclass(frozen=True)
class Language:
    """How the words of a language are built and written.

    ``frequent`` are its function words, most frequent first. ``onsets``, ``nuclei`` and ``codas`` are the parts of a
    syllable; repeated entries are likelier. ``space``, ``comma``, ``stop`` and ``paragraph`` follow a word, ``end`` follows
    the last word of a text.
    """

    code: str
    frequent: tuple[str, ...]
    onsets: tuple[str, ...]
    nuclei: tuple[str, ...]
    codas: tuple[str, ...]
    space: str = " "
    comma: str = ", "
    stop: str = ". "
    paragraph: str = ".\n\n"
    end: str = "."


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_ENGLISH = Language(
    "en",
    _listed(
        "the of and to in a is that for it was on with as be by this are at from have not or an they which "
        "but we you had their has were there one all her can more will"
    ),
    _listed("b c d f g h l m n p r s t v w b c d l m n p r s t br cl dr fl gr pl pr st tr th sh"),
    _listed("a a e e i i o o u ea ou ai ee"),
    (*[""] * 14, "n", "n", "r", "l", "s", "m", "nd", "rt", "ck", "ng", "th"),
)
_GERMAN = Language(
    "de",
    _listed(
        "die der und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden "
        "aus er hat dass sie nach wird bei einer um am sind noch wie einem über"
    ),
    _listed("b d f g h k l m n r s t w z sch pf st br kr gr fr schl zw"),
    _listed("a a e e e i o u ä ö ü ei ie au"),
    (*[""] * 10, "n", "n", "r", "l", "cht", "ng", "st", "ß", "rk", "tz"),
)
_RUSSIAN = Language(
    "ru",
    _listed(
        "и в не на что он с как а то это по но они мы все она так его за бы от же из для вы у было к только "
        "когда уже или ещё быть был до если при"
    ),
    _listed("б в г д ж з к л м н п р с т ф х ц ч ш пр ст кр гр вл сл"),
    _listed("а а е и и о о у ы я ё ю э"),
    (*[""] * 12, "н", "р", "л", "й", "с", "т", "м", "сть", "ть"),
)
# The block of unified ideographs of Unicode 1.1: each is its own NFC and NFKC form.
_CHINESE = Language(
    "zh",
    tuple("的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年"),
    (),
    (),
    (),
    space="",
    comma="，",
    stop="。",
    paragraph="。\n\n",
    end="。",
)
_IDEOGRAPHS = range(0x4E00, 0x9FA6)
_IDEOGRAPHS_USED = 3_000

LANGUAGES: tuple[Language, ...] = (_ENGLISH, _GERMAN, _RUSSIAN, _CHINESE)
LANGUAGE_CODES: tuple[str, ...] = tuple(language.code for language in LANGUAGES)
ENGLISH, GERMAN, RUSSIAN, CHINESE = range(4)
"""Positions in ``LANGUAGES``: languages travel as these small integers."""


def build_words(seed: int, language: Language) -> pa.Array:
    """The ``VOCABULARY_SIZE`` different words of a language, most frequent first, as an Arrow string array in NFC."""
    draws = Draws(seed, "vocabulary " + language.code)
    candidates = VOCABULARY_SIZE * 2
    # Frequent words are shorter, as in every natural language: one or two syllables first, two to four later.
    longer = np.array([2, 2, 2, 2, 3, 3, 3, 4])[draws.below(8, candidates)]
    syllables = np.where(np.arange(candidates) < 1_500, 1 + draws.below(2, candidates), longer)
    if language.onsets:
        parts = [_syllables(language, draws, candidates) for _ in range(4)]
    else:
        syllables = np.where(np.arange(candidates) < 300, 1, np.minimum(syllables, 3))
        chosen = draws.distinct(len(_IDEOGRAPHS), _IDEOGRAPHS_USED)
        characters = pa.array([chr(_IDEOGRAPHS[offset]) for offset in chosen])
        parts = [characters.take(pa.array(draws.below(_IDEOGRAPHS_USED, candidates))) for _ in range(3)]
    silent = pa.scalar("")
    parts = [
        part if number == 0 else pc.if_else(pa.array(syllables > number), part, silent)
        for number, part in enumerate(parts)
    ]
    invented = pc.binary_join_element_wise(*parts, "")
    # ``unique`` keeps the order of first appearance, so the function words stay in front.
    words = pc.unique(pa.concat_arrays([pa.array(language.frequent), invented]))
    if len(words) < VOCABULARY_SIZE:
        raise ValueError(f"the syllables of {language.code!r} make only {len(words)} different words")
    return words.slice(0, VOCABULARY_SIZE)


def _syllables(language: Language, draws: Draws, count: int) -> pa.Array:
    columns = [
        pa.array(choices).take(pa.array(draws.below(len(choices), count)))
        for choices in (language.onsets, language.nuclei, language.codas)
    ]
    return pc.binary_join_element_wise(*columns, "")


def sampling_ranks(size: int) -> NDArray[np.int64]:
    """2^18 ranks in [0, ``size``): a uniform 18-bit number, looked up here, follows the Zipf-Mandelbrot law."""
    weights = (1 << 40) // (np.arange(size, dtype=np.int64) + _MANDELBROT_SHIFT)
    cumulative = np.cumsum(weights)
    edges = (cumulative >> 10) * (1 << SAMPLING_BITS) // (int(cumulative[-1]) >> 10)
    return np.repeat(np.arange(size), np.diff(edges, prepend=0))


def favoured_ranks(seed: int, source: str) -> NDArray[np.int64]:
    """The order in which a source prefers the words of a language: a permutation of the ranks.

    Function words stay where they are; every fourth other word changes places with another such word. So sources differ in
    what they talk about, and a classifier has something to learn.
    """
    order = np.arange(VOCABULARY_SIZE)
    own = order[FUNCTION_WORDS::4]
    shuffled = own[np.argsort(Draws(seed, "favoured words " + source).words64(len(own)), kind="stable")]
    order[FUNCTION_WORDS::4] = shuffled
    return order
