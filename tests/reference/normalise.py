"""norm_v1 in plain Python: what the kernel must equal."""

import re
import unicodedata


def norm_v1(text: str) -> str:
    """Remove, lower, compose, collapse; again until nothing changes."""
    while True:
        removed = re.sub("[\u200b\ufeff\u00ad]", "", text)
        result = " ".join(unicodedata.normalize("NFC", removed.lower()).split())
        if result == text:
            return result
        text = result
