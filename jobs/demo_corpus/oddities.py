"""Single planted records: junk, empty texts, broken lines, odd but good documents, and documents on a block list."""

from __future__ import annotations

import numpy as np

from jobs.demo_corpus.copies import BLOCKED_ID, DROP_BLOCKED_ID
from jobs.demo_corpus.lexicon import json_escaped
from jobs.demo_corpus.planted import (
    KEEP,
    Form,
    PlantedRecord,
    PlantedUnit,
    Quota,
    TextRequest,
    Workshop,
    any_source,
)
from jobs.demo_corpus.quality import SHORTEST_TEXT
from jobs.demo_corpus.randomness import Draws
from jobs.demo_corpus.records import BLOCKED_DOMAINS, DECOY_DOMAIN
from jobs.demo_corpus.sources import FORUM, WEB
from jobs.demo_corpus.vocabulary import ENGLISH, VOCABULARY_SIZE

JUNK, EMPTY, BROKEN, ODD, BLOCKED_DOMAIN = "junk", "empty", "broken", "odd", "blocked_domain"

LONG_TOKEN = 300_000
"""Characters of the one word that a record of junk is."""

_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8)
_SYMBOLS = np.frombuffer(b"#$%&*+-/<=>@^_|~!?;:.,()[]{}   0123456789", dtype=np.uint8)

EMPTY_TEXTS: tuple[str, ...] = (
    "",
    " ",
    "\u3000",
    "\u200b\ufeff",
    "\n\t \r\n",
    "\u00a0\u2003",
    "\u2028\u0085",
    "\u00ad",
)
"""Texts that are empty under ``norm_v1``."""

_BROKEN: tuple[tuple[Form, str, bytes], ...] = (
    (Form.CUT, "bad_json", b""),
    (Form.GLUED, "several_records_on_line", b""),
    (Form.BARE_LINE, "not_an_object", b"[1,2]"),
    (Form.NULL_TEXT, "text_missing", b""),
    (Form.BARE_TEXT, "text_not_string", b"12"),
    (Form.BARE_TEXT, "text_not_string", b'{"x":1}'),
    (Form.BARE_TEXT, "text_not_string", b'["p","q"]'),
    (Form.BARE_TEXT, "text_not_string", b"true"),
    (Form.NO_TEXT, "text_missing", b""),
)
BROKEN_VARIETIES = len(_BROKEN)


class Single(PlantedUnit):
    """One planted record of a small or middling text of its own."""

    kind = ""
    expected = KEEP
    style = WEB
    least, most = 60, 400

    def __init__(self, number: int, draws: Draws, quota: Quota) -> None:
        super().__init__()
        self.number = number
        self.record = PlantedRecord(quota.take(any_source(draws)), self.kind, self.expected)
        self.members = [self.record]

    def requests(self) -> list[TextRequest]:
        """One English text in the style of ``style``, of ``least`` to ``most`` words."""
        return [TextRequest(self.style, ENGLISH, self.least, self.most)]

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """The text as it is."""
        self.record.text = texts[0]


class _Made(Single):
    """A single record that needs no composed text."""

    def requests(self) -> list[TextRequest]:
        return []


class ShortText(_Made):
    """Junk: a text below the least number of characters, with a number so that no two are equal."""

    kind, expected = JUNK, "drop:too_short"

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """Two words and the record's number among the short texts."""
        lexicon, draws = workshop.composer.lexicon, workshop.draws
        words = [lexicon.word(ENGLISH, draws.one(VOCABULARY_SIZE)) for _ in range(2)]
        self.record.text = f"{' '.join(words)[: SHORTEST_TEXT - 20]} {self.number:09d}".encode()
        self.record.detail = "two words and a number"


class SymbolSoup(_Made):
    """Junk: 200 to 599 characters without a letter."""

    kind, expected = JUNK, "drop:symbol_soup"

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """Random symbols and digits between two bars, so that the ends are not white space."""
        count = 200 + workshop.draws.one(400)
        symbols = _SYMBOLS[workshop.draws.below(len(_SYMBOLS), count - 2)].tobytes()
        self.record.text = b"|" + symbols + b"|"
        self.record.detail = "symbols and digits"


class LongToken(_Made):
    """Junk: a short sentence and one word of 300,000 characters."""

    kind, expected = JUNK, "drop:long_token"

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """Characters of base64."""
        token = _BASE64[(workshop.draws.words64(LONG_TOKEN) & np.uint64(63)).astype(np.int64)].tobytes()
        self.record.text = b"The picture shows the river in spring. " + token
        self.record.detail = f"one word of {LONG_TOKEN} characters"


class EmptyText(_Made):
    """A text that is empty or blank."""

    kind, expected = EMPTY, "drop:empty"

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """One of the empty texts, in turn."""
        text = EMPTY_TEXTS[self.number % len(EMPTY_TEXTS)]
        self.record.text = json_escaped(text)
        self.record.detail = " ".join(f"U+{ord(character):04X}" for character in text) or "no character"


class BrokenLine(Single):
    """A line that ingest has to put aside, with a reason of its own for each way to be broken."""

    kind = BROKEN
    style = FORUM

    def __init__(self, number: int, draws: Draws, quota: Quota) -> None:
        super().__init__(number, draws, quota)
        self._form, self._reason, self._value = _BROKEN[number % len(_BROKEN)]

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """The form of the line, and the value that stands where the text or the record should."""
        self.record.form, self.record.expected = self._form, f"reject:{self._reason}"
        self.record.text = self._value or texts[0]
        self.record.detail = self._form.value.replace("`text`", self._value.decode())


def _insert(text: bytes, insertions: tuple[str | bytes, ...], rounds: int = 1) -> bytes:
    """The text with the given pieces, in turn, as words of their own between some of its words."""
    words = text.split(b" ")
    step = max(1, len(words) // (len(insertions) * rounds + 1))
    for turn in reversed(range(len(insertions) * rounds)):
        piece = insertions[turn % len(insertions)]
        words.insert((turn + 1) * step, piece if isinstance(piece, bytes) else piece.encode())
    return b" ".join(words)


def _line_separators(text: bytes) -> bytes:
    """Line and paragraph separators and NEL as they are, vertical tab and form feed escaped, in place of spaces."""
    words = text.split(b" ")
    separators = ["\u2028".encode(), "\u0085".encode(), "\u2029".encode(), b"\\u000b", b"\\u000c"]
    head = b"".join(word + separators[at % len(separators)] for at, word in enumerate(words[:20]))
    return head + b" ".join(words[20:])


_HEBREW = "אבגדהוזחטיכלמנסעפצקרשת"
_ARABIC = "ابتثجحدرزسشصطعغفقكلمنهوي"
_EMOJI = ("👩‍👩‍👧‍👦", "👍🏽", "🏳️‍🌈", "🇩🇪", "👩🏿‍🚀", "❤️")
_SURROGATES = {"lone_high_surrogate": b"Great \\ud83d news", "lone_low_surrogate": b"Great \\ude00 tidings"}

ODD_VARIETIES: tuple[str, ...] = (
    *_SURROGATES,
    "line_separators",
    "right_to_left",
    "emoji_joined",
    "long_line",
    "json_escapes",
    "domain_decoy",
)
_LONG_LINE_WORDS = 8_000


class OddDocument(Single):
    """A document that is unusual and must be kept."""

    kind = ODD

    def __init__(self, number: int, draws: Draws, quota: Quota) -> None:
        super().__init__(number, draws, quota)
        self._variety = ODD_VARIETIES[number % len(ODD_VARIETIES)]
        self.record.detail = self._variety
        if self._variety == "long_line":
            self.least = self.most = _LONG_LINE_WORDS
        if self._variety == "domain_decoy":
            self.record.domain = DECOY_DOMAIN

    def write(self, texts: list[bytes], workshop: Workshop) -> None:
        """The text with what is odd about it."""
        text = texts[0]
        if self._variety in _SURROGATES:
            text = _insert(text, (_SURROGATES[self._variety],))
        elif self._variety == "line_separators":
            text = _line_separators(text)
        elif self._variety == "right_to_left":
            text = _right_to_left(workshop.draws)
        elif self._variety == "emoji_joined":
            text = _insert(text, _EMOJI, rounds=2)
        elif self._variety == "long_line":
            text = text.replace(b"\\n\\n", b" ")
        elif self._variety == "json_escapes":
            escapes = (
                b'say \\"yes\\"',
                b"C:\\\\new\\\\table",
                b"and\\/or",
                b"caf\\u00e9",
                b"\\ud83d\\ude00",
                b"a\\tb",
            )
            text = _insert(text, escapes)
        self.record.text = text


def _right_to_left(draws: Draws) -> bytes:
    words = []
    for at in range(100):
        letters = _ARABIC if at < 50 else _HEBREW
        words.append("".join(letters[draws.one(len(letters))] for _ in range(3 + draws.one(5))))
    return ("\u200f" + " ".join(words)).encode()


class BlockedByDomain(Single):
    """A good document whose URL has a blocked host."""

    kind, expected = BLOCKED_DOMAIN, "drop:blocked_domain"

    def __init__(self, number: int, draws: Draws, quota: Quota) -> None:
        super().__init__(number, draws, quota)
        self.record.domain = self.record.detail = BLOCKED_DOMAINS[number % len(BLOCKED_DOMAINS)]


class BlockedById(Single):
    """A good document whose id is on the takedown list."""

    kind, expected = BLOCKED_ID, DROP_BLOCKED_ID
