"""Questions of a quiz in Moodle's text format, GIFT (docs.moodle.org/en/GIFT_format).

A question is ``::name::[html]text {answers}``, followed by an empty line. Of several answers the
right one begins with ``=``, others with ``~``, and what is said of one follows ``#``. Numbers begin
with ``#`` and have a tolerance after a colon; a known wrong one is worth ``%0%``.
"""

import re

from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from drocox.exercises.quizzes import QuizQuestion

SPECIAL = re.compile(r"([\\~=#{}:])")
TOLERANCE = 1e-3  # three decimals were asked for; what was cut off is right, too


def written(questions: list[tuple[str, QuizQuestion]], category: str) -> str:
    """Pairs of what is given and a question, for a category of Moodle's question bank."""
    blocks = [f"$CATEGORY: $course$/{category}", *(one(*pair) for pair in questions)]
    return "\n\n".join(blocks) + "\n"


def one(given: str, question: QuizQuestion) -> str:
    """A question with its answers."""
    text = html(f"{given}\n\n{question.text}")
    kind, answers = "", []
    if not question.choices:
        kind = "#"
        answers.append(f"={question.right:.6g}:{TOLERANCE}")
        for mistake, says in question.shows.items():
            answers.append(f"=%0%{float(mistake):.6g}:{TOLERANCE} # {html(says)}")
    for letter, words in question.choices.items():
        said = f" # {html(question.shows[letter])}" if letter in question.shows else ""
        answers.append(f"{'=' if letter == question.right else '~'}{html(words)}{said}")
    return "\n".join([f"::{escaped(question.name)}::[html]{text} {{{kind}", *answers, "}"])


def html(markdown: str) -> str:
    """Markdown as a line of HTML, with formulas as Moodle's filter wants them, escaped for GIFT."""
    parser = MarkdownIt("commonmark").enable("table")
    parser.use(dollarmath_plugin, renderer=lambda tex, _: rf"\({tex}\)", allow_space=True)
    text = re.sub(r"</?span[^>]*>", "", parser.render(markdown))
    if text.count("<p>") == 1 and text.startswith("<p>"):
        text = re.sub(r"</?p>", "", text)
    return escaped(" ".join(text.split()))


def escaped(text: str) -> str:
    """Text in which signs with a meaning in GIFT stand for themselves."""
    return SPECIAL.sub(r"\\\1", text)
