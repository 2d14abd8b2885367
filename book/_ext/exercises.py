"""Sphinx extension: exercises and quizzes that can be answered in the page.

A stub, that is a code cell with the tag ``stub``, calls ``check("name", answer)``. If that answer
is numbers or letters, the page gets a field after the cell. The directive

    ```{quiz} dual
    ```

shows the quiz of a chapter. Both put into the page the cases by which
:func:`drocox.exercises.check` grades, as JSON in a script element, from which ``exercises.js``
makes a form. Without scripts there is no form, and the stub and the questions are shown as they
are.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from drocox import exercises

CHECK = re.compile(r'check\("([\w-]+)"')
SOURCES = Path(exercises.__file__).parent
WITHOUT_SCRIPTS = (
    '<noscript><p class="quiz-note">The notebook of this chapter checks the answers.</p></noscript>'
)


def page_data(name):
    """The data of a form: an exercise answered by numbers or letters, or a question of a quiz."""
    hints = exercises.hints(name) if name in exercises.names() else []
    return exercises.question(name).data() | {"name": name, "hints": hints}


def field_html(data):
    """The HTML of a form, from :func:`page_data`, which the page's script completes."""
    text = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    return f'<div class="answer"><script type="application/json">{text}</script></div>'


def field(name):
    """The node of a field."""
    return nodes.raw("", field_html(page_data(name)), format="html")


class Quiz(SphinxDirective):
    """The questions of a chapter's quiz, each with its choices and a field."""

    required_arguments = 1

    def run(self):
        """The nodes of the quiz."""
        note_sources(self.env)
        box = nodes.container(classes=["quiz"])
        for number, question in enumerate(exercises.quiz(self.arguments[0]), start=1):
            item = nodes.container(classes=["quiz-question"])
            self.parse(f"**{number}.** {question.text}", item)
            if question.choices:
                choices = nodes.enumerated_list(enumtype="loweralpha", prefix="", suffix=".")
                for text in question.choices.values():
                    choice = nodes.list_item()
                    self.parse(text, choice)
                    choices += choice
                item += choices
            item += field(question.name)
            box += item
        box += nodes.raw("", WITHOUT_SCRIPTS, format="html")
        return [box]

    def parse(self, text, node):
        """Parse Markdown into a node."""
        source, line = self.get_source_info()
        self.state.nested_parse(StringList([text], source), line, node)


def note_sources(env):
    """Make pages with fields depend on the exercises."""
    for path in sorted(SOURCES.iterdir()):
        if path.suffix in {".py", ".toml"}:
            env.note_dependency(str(path))


def add_fields(app, doctree):
    """On doctree-read. A field after every stub that asks for numbers or letters."""
    for cell in list(doctree.findall(nodes.container)):
        if "tag_stub" not in cell["classes"]:
            continue
        note_sources(app.env)
        named = CHECK.search(cell.astext())
        if named and exercises.question(named[1]) is not None:
            place = cell.parent.index(cell)
            cell.parent.insert(place + 1, field(named[1]))


def add_script(app, pagename, templatename, context, doctree):
    """On html-page-context. Add script and style to pages with a field."""
    if '<div class="answer">' in context.get("body", ""):
        app.add_js_file("exercises.js", loading_method="defer")
        app.add_css_file("exercises.css")


def setup(app):
    """Called by Sphinx."""
    app.add_directive("quiz", Quiz)
    app.connect("doctree-read", add_fields)
    app.connect("html-page-context", add_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
