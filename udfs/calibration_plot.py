"""A reliability diagram as one self-contained SVG: what a classifier predicted against what was found."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from udfs.classifier_metrics import Bin

WIDTH, HEIGHT = 520, 560
LEFT, TOP, SIDE = 70, 70, 400
"""The square of the diagram: its corner and its side, in pixels."""
BARS_TOP, BARS_HEIGHT = 490, 40
"""The strip below it, with a bar per bin for how many documents it holds."""


def calibration_svg(table: Sequence[Bin], title: str, below: str, found: str = "share of positives") -> str:
    """The diagram: a point per bin with documents, the diagonal on which a calibrated classifier lies, counts as bars.

    Args:
        table: See ``classifier_metrics.calibration``.
        title: Above the diagram.
        below: A line under the title.
        found: What the vertical axis shows.

    Returns:
        SVG text; equal input gives equal bytes.
    """
    points = [(entry.mean_score, entry.share_positive) for entry in table]
    known = [(_x(score), _y(share)) for score, share in points if score is not None and share is not None]
    most = max((entry.documents for entry in table), default=0) or 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(LEFT, 28, title, size=15),
        _text(LEFT, 48, below, colour="#555"),
    ]
    for tenth in range(0, 11, 2):
        value = tenth / 10
        parts.append(_line(_x(value), TOP, _x(value), TOP + SIDE, "#e4e4e4"))
        parts.append(_line(LEFT, _y(value), LEFT + SIDE, _y(value), "#e4e4e4"))
        parts.append(_text(LEFT - 8, _y(value) + 4, f"{value:g}", anchor="end"))
        parts.append(_text(_x(value), BARS_TOP + BARS_HEIGHT + 14, f"{value:g}", anchor="middle"))
    parts.append(f'<rect x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}" fill="none" stroke="#888"/>')
    parts.append(_line(_x(0), _y(0), _x(1), _y(1), "#888", dashed=True))
    if known:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
        parts.append(f'<polyline points="{path}" fill="none" stroke="#1f5fa8" stroke-width="2"/>')
    for entry in table:
        if entry.mean_score is None or entry.share_positive is None:
            continue
        said = f"{entry.documents:,} documents, mean score {entry.mean_score:.3f}, {found} {entry.share_positive:.3f}"
        x, y = _x(entry.mean_score), _y(entry.share_positive)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#1f5fa8"><title>{escape(said)}</title></circle>')
        height = BARS_HEIGHT * entry.documents / most
        left, width = _x(entry.low) + 1, SIDE * (entry.high - entry.low) - 2
        parts.append(
            f'<rect x="{left:.1f}" y="{BARS_TOP + BARS_HEIGHT - height:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="#9db9d9"><title>{entry.documents:,} documents</title></rect>'
        )
    parts.append(_line(LEFT, BARS_TOP + BARS_HEIGHT, LEFT + SIDE, BARS_TOP + BARS_HEIGHT, "#888"))
    parts.append(_text(LEFT - 8, BARS_TOP + 10, f"{most:,}", anchor="end", colour="#555"))
    parts.append(_text(LEFT + SIDE / 2, HEIGHT - 2, "score (bars: documents per bin)", anchor="middle"))
    middle = TOP + SIDE / 2
    parts.append(
        f'<text x="20" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 20 {middle:.1f})">{escape(found)}</text>'
    )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _x(value: float) -> float:
    return LEFT + SIDE * value


def _y(value: float) -> float:
    return TOP + SIDE * (1 - value)


def _text(x: float, y: float, said: str, *, size: int = 12, anchor: str = "start", colour: str = "#222") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}">{escape(said)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dash}/>'
