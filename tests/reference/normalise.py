"""norm_v1 in plain Python: what the kernel must equal (on the code points that Unicode 14 assigns)."""

from __future__ import annotations

import hashlib
import unicodedata

REMOVED = {ord(character): None for character in "\u200b\ufeff\u00ad"}


def norm_v1(text: str) -> str:
    """Return the normalised text."""
    return " ".join(unicodedata.normalize("NFC", text.translate(REMOVED).lower()).split())


def norm_v1_key(text: str) -> bytes | None:
    """Return SHA-256 of the normalised text, or None if nothing is left."""
    normalised = norm_v1(text)
    return hashlib.sha256(normalised.encode()).digest() if normalised else None
