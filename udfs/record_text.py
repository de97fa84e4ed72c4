"""Text of records that can be stored and shown: valid in UTF-8, cut to a length, with notes of what was repaired."""

from __future__ import annotations

from typing import Any


def add_note(note: str, notes: list[str]) -> None:
    """Note a repair once."""
    if note not in notes:  # a document is counted once under each note
        notes.append(note)


def valid_text(text: str, notes: list[str]) -> tuple[str, bytes]:
    """The text and its UTF-8 bytes; lone halves of a surrogate pair become U+FFFD, and that is noted."""
    try:
        return text, text.encode("utf-8")
    except UnicodeEncodeError:
        # Through UTF-16 a high and a low half that stand side by side become the one character that was meant.
        repaired = text.encode("utf-16-le", errors="surrogatepass").decode("utf-16-le", errors="replace")
        add_note("bad_unicode", notes)
        return repaired, repaired.encode("utf-8")


def kind_of(value: Any) -> str:
    """The kind of a JSON value, in JSON's own words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a string", int: "a number", float: "a number", list: "an array", dict: "an object", bytes: "bytes"}
    return names.get(type(value), f"a {type(value).__name__}")


def shortened(text: str, length: int = 120) -> str:
    """Text cut to a length, for a message."""
    return text if len(text) <= length else text[: length - 3] + "..."
