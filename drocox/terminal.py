"""Text for a terminal of 80 columns."""

import textwrap
from collections.abc import Sequence

LABEL_WIDTH = 25  # of a group in a table of text


def listed(names: Sequence[str], most: int, last: str = " and ") -> str:
    """Names with commas between them; of many the first ones, and how many there are besides."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return last.join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def fill(text: str, first: str = "", indent: str = "") -> str:
    """Wrap a text to 80 columns; a command at its end, after ": drocox", stays on one line."""
    words, colon, command = text.partition(": drocox ")
    wrap = textwrap.TextWrapper(80, initial_indent=first, subsequent_indent=indent)
    wrap.break_long_words = wrap.break_on_hyphens = False
    advice = [f"{indent}  drocox {command}"] if command else []
    return "\n".join(wrap.wrap(words + colon[:1]) + advice)


def short_labels(labels: Sequence[str], width: int = LABEL_WIDTH) -> list[str]:
    """Labels of at most ``width`` characters, long ones abbreviated in the middle, all distinct."""
    long = {label for label in labels if len(label) > width}
    middle = (width - 1) // 2
    for head in sorted(range(width - 1), key=lambda size: abs(size - middle)):
        tail = width - 1 - head
        short = {label: f"{label[:head]}…{label[-tail:]}" for label in long}
        if len(set(short.values())) == len(long):
            return [short.get(label, label) for label in labels]
    number = {label: f"…{k + 1}" for k, label in enumerate(sorted(long))}
    keep = width - len(f"…{len(long)}")
    return [label[:keep] + number[label] if label in long else label for label in labels]
