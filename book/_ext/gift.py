"""Questions of a quiz in Moodle's text format, GIFT (docs.moodle.org/en/GIFT_format).

A question is ``::name::[html]text {answers}``, followed by an empty line. Of several answers the
right one begins with ``=``, others with ``~``, and what is said of one follows ``#``; numbers begin
with ``#`` and have a tolerance after a colon.
"""

import re

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

SPECIAL = re.compile(r"([\\~=#{}:])")
DECIMALS = 5e-4  # three decimals were asked for; what was cut off is right, too


def written(intro, questions, category):
    """A text and questions as a file that Moodle imports into a category of its question bank."""
    parts = [f"$CATEGORY: $course$/{category}", f"::What is given::[html]{html(intro)}"]
    return "\n\n".join([*parts, *map(one, questions)]) + "\n"


def one(question):
    """A question with its answers."""
    text = f"::{escaped(question.name)}::[html]{html(question.text)}"
    if not question.choices:
        return f"{text} {{#\n={question.right:.6g}:{2 * DECIMALS}\n}}"
    answers = []
    for letter, words in question.choices.items():
        said = f" # {html(question.shows[letter])}" if letter in question.shows else ""
        answers.append(f"{'=' if letter == question.right else '~'}{html(words)}{said}")
    return "\n".join([f"{text} {{", *answers, "}"])


def html(markdown):
    """Markdown as a line of HTML, with formulas as Moodle's filter wants them, escaped for GIFT."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.use(dollarmath_plugin, renderer=lambda tex, _: rf"\({tex}\)", allow_space=True)
    text = re.sub(r"</?span[^>]*>", "", parser.render(markdown))
    if text.count("<p>") == 1 and text.startswith("<p>"):
        text = re.sub(r"</?p>", "", text)
    return escaped(" ".join(text.split()))


def escaped(text):
    """Text in which signs with a meaning in GIFT stand for themselves."""
    return SPECIAL.sub(r"\\\1", text)
