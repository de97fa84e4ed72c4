"""The heuristics in plain Python: what the kernel must equal. Slow, and needs Unicode 14.0 to be equal on all texts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any

STOP_WORDS = ("the", "be", "to", "of", "and", "that", "have", "with")
BULLETS = ("•", "‣", "⁃", "▪", "●", "◦")
C4_ENDINGS = (".", "!", "?", '"', "'", "”", "’")
PHRASES = (
    "javascript",
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
)
# The property Sentence_Terminal of Unicode 14.0, as the kernel's table has it, but character by character.
SENTENCE_TERMINAL = frozenset(
    "!.?։؝؞؟۔܀܁܂߹࠷࠹࠽࠾।॥၊။።፧፨᙮᜵᜶᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᭽᭾᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼⹓⹔。꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗！．？｡𐩖𐩗𐽕𐽖𐽗𐽘𐽙𐾆𐾇𐾈𐾉"
    "𑁇𑁈𑂾𑂿𑃀𑃁𑅁𑅂𑅃𑇅𑇆𑇍𑇞𑇟𑈸𑈹𑈻𑈼𑊩𑑋𑑌𑗂𑗃𑗉𑗊𑗋𑗌𑗍𑗎𑗏𑗐𑗑𑗒𑗓𑗔𑗕𑗖𑗗𑙁𑙂𑜼𑜽𑜾𑥄𑥆𑩂𑩃𑪛𑪜𑱁𑱂𑻷𑻸𖩮𖩯𖫵𖬷𖬸𖭄𖺘𛲟𝪈"
)


def heuristics(text: str, stop_words: Iterable[str] = STOP_WORDS, c4_line_words: int = 3) -> dict[str, Any]:
    """Return all values of one text."""
    words = text.split()
    gopher_words = [word for word in words if any(map(is_wordy, word))]
    lines = [line.strip() for line in text.split("\n")]
    paragraphs = [tuple(run) for is_text, run in groupby(lines, bool) if is_text]
    lines = [line for line in lines if line]
    line_lengths = [len(line) for line in lines]
    kept_but_for_ending = [line for line in lines if c4_keeps_but_for_ending(line, c4_line_words)]
    kept = [line for line in kept_but_for_ending if line.endswith(C4_ENDINGS) and not line.endswith("...")]
    return {
        "words": len(words),
        "gopher_words": len(gopher_words),
        "mean_word_length": share(sum(map(len, gopher_words)), len(gopher_words)),
        "hash_ratio": share(text.count("#"), len(words)),
        "ellipsis_ratio": share(text.count("...") + text.count("…"), len(words)),
        "bullet_lines": share(sum(map(is_bullet, lines)), len(lines)),
        "ellipsis_lines": share(sum(line.endswith(("...", "…")) for line in lines), len(lines)),
        "alphabetic_words": share(sum(any(map(is_letter, word)) for word in words), len(words)),
        "stop_words": len(set(map(compared, stop_words)) & set(map(compared, words))),
        "duplicate_lines": share(sum(repeats(lines)), len(lines)),
        "duplicate_line_characters": share(
            sum(len(line) for line, again in zip(lines, repeats(lines), strict=True) if again), sum(line_lengths)
        ),
        "duplicate_paragraphs": share(sum(repeats(paragraphs)), len(paragraphs)),
        "duplicate_paragraph_characters": share(
            sum(sum(map(len, p)) for p, again in zip(paragraphs, repeats(paragraphs), strict=True) if again),
            sum(line_lengths),
        ),
        **{f"top_{n}_gram": share(most_frequent(words, n), sum(map(len, words))) for n in (2, 3, 4)},
        **{f"duplicate_{n}_grams": share(duplicated(words, n), sum(map(len, words))) for n in range(5, 11)},
        "c4_lines_kept": share(len(kept), len(lines)),
        "c4_sentences": sum(map(sentences, kept)),
        "c4_sentences_any_ending": sum(map(sentences, kept_but_for_ending)),
        "lorem_ipsum": occurs("lorem ipsum", text),
        "curly_bracket": "{" in text,
        "lines_ending_in_punctuation": share(sum(line[-1] in SENTENCE_TERMINAL for line in lines), len(lines)),
        "short_lines": share(sum(length < 30 for length in line_lengths), len(lines)),
        "line_feeds_per_word": share(text.count("\n"), len(words)),
    }


def share(part: int, whole: int) -> float | None:
    """Return part / whole, rounded to six decimals, half to even; None if the whole is nothing."""
    return float(round(Fraction(part, whole), 6)) if whole else None


def is_letter(character: str) -> bool:
    return unicodedata.category(character)[0] == "L"


def is_wordy(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"


def is_bullet(line: str) -> bool:
    return line.startswith(BULLETS) or line.split()[0] in ("-", "*")


def compared(word: str) -> str:
    """Return a word as stop words are compared."""
    while word and not is_wordy(word[0]):
        word = word[1:]
    while word and not is_wordy(word[-1]):
        word = word[:-1]
    lowered = ((character, unicodedata.normalize("NFC", character.lower())) for character in word)
    return "".join(lower if len(lower) == 1 else character for character, lower in lowered)


def repeats(items: Sequence[Any]) -> list[bool]:
    """Say of each item whether an equal one stands before it."""
    return [item in items[:place] for place, item in enumerate(items)]


def n_grams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]


def most_frequent(words: Sequence[str], n: int) -> int:
    """Return the characters within the most frequent n-gram: of several, within the one that covers most."""
    counts = Counter(n_grams(words, n))
    most = max(counts.values(), default=0)
    if most < 2:
        return 0
    return max(covered(words, n, {gram}) for gram, count in counts.items() if count == most)


def duplicated(words: Sequence[str], n: int) -> int:
    """Return the characters within n-grams that occur more than once."""
    return covered(words, n, {gram for gram, count in Counter(n_grams(words, n)).items() if count > 1})


def covered(words: Sequence[str], n: int, grams: set[tuple[str, ...]]) -> int:
    places = {start + i for start, gram in enumerate(n_grams(words, n)) if gram in grams for i in range(n)}
    return sum(len(words[place]) for place in places)


def c4_keeps_but_for_ending(line: str, least_words: int) -> bool:
    words = line.split()
    return (
        len(words) >= least_words
        and max(map(len, words)) <= 1000
        and not any(occurs(phrase, line) for phrase in PHRASES)
    )


def occurs(phrase: str, text: str) -> bool:
    """Say whether a phrase occurs, in whatever case of ASCII."""
    return re.search(phrase, text, re.IGNORECASE | re.ASCII) is not None


def sentences(line: str) -> int:
    pieces: list[list[str]] = [[]]
    for word in line.split():
        pieces[-1].append(word)
        if re.search(r"""[.!?]["')\]”’]*$""", word):
            pieces.append([])
    return sum(any(is_wordy(character) for word in piece for character in word) for piece in pieces)
