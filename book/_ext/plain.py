"""Chapters as plain Markdown, for notebooks outside the site.

JupyterLab, Colab and a repository's page do not know MyST. Here its directives and roles are
translated: glued values become text, boxes become quotes, exercises and solutions headings,
theorems, formulas and figures carry their numbers on the site, and references and citations become
links. Markup without a translation raises an error, so that none is left.
"""

import collections
import copy
import functools
import os
import re
from pathlib import Path

import nbformat
import yaml
from markdown_it.renderer import RendererHTML
from myst_nb.core.read import read_myst_markdown_notebook
from myst_nb.core.variables import format_plain_text
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from pybtex.database import parse_file

from drocox import exercises

ROOT = Path(__file__).resolve().parents[2]
BOXES = ("admonition", "note", "tip", "hint", "warning", "important", "seealso", "dropdown")
SOLUTION = "#### Solution"
HIDDEN = {"remove-cell", "hide-cell", "hide-input"}
# A span of code, alone or as the text of a role; words with a class; the target of a link.
SPAN = re.compile(r"(?:\{([\w:.-]+)\})?(`+)(?!`)(.+?)(?<!`)\2(?!`)", re.DOTALL)
CLASSED = re.compile(r"\[([^][]*)\]\{\.([\w-]+)\}")
TARGET = re.compile(r"\]\(([^()\s]*)\)")
FORMULA = re.compile(r"\$\$.+?\$\$|\$[^$]+\$", re.DOTALL)
LEFT = re.compile(r"^\s*[`:]{3,}\s*\{|\{[a-z][\w:.-]*\}`|\]\{\.|^\([\w-]+\)=|^%", re.MULTILINE)


class Untranslated(ValueError):
    """Markup of the book that has no translation here."""


@functools.lru_cache
def syntax():
    """The build's own settings of Markdown."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
    return MdParserConfig(enable_extensions=set(config["parse"]["myst_enable_extensions"]))


@functools.lru_cache
def parser():
    """The build's own Markdown parser, for blocks only."""
    markdown = create_md_parser(syntax(), RendererHTML)
    markdown.core.ruler.enableOnly(["normalize", "block"])
    return markdown


@functools.lru_cache
def parsed(text):
    """The text of a page as a notebook; a build looks at the same text many times."""
    return read_myst_markdown_notebook(text, syntax())


def notebook(text):
    """The text of a page as a notebook (a copy), read as in the build."""
    return copy.deepcopy(parsed(text))


def read(source):
    """A page as a notebook."""
    return notebook(source.read_text(encoding="utf8"))


@functools.lru_cache
def pages():
    """The pages of the table of contents with their chapter numbers, "" for unnumbered ones."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    found = {ROOT / f"{toc['root']}.md": ""}
    chapter = 0
    for part in toc["parts"]:
        for entry in part["chapters"]:
            chapter += "numbered" in part
            found[ROOT / f"{entry['file']}.md"] = str(chapter) if "numbered" in part else ""
    return found


class Directive:
    """Name, argument, options and body of ``{name} argument``."""

    def __init__(self, token):
        self.name, self.argument = re.match(r"\{([\w:-]+)\}\s*(.*)", token.info.strip()).groups()
        lines = token.content.split("\n")
        self.options = {}
        while lines and (option := re.match(r":([\w-]+):\s*(.*)", lines[0])):
            self.options[option[1]] = option[2]
            lines.pop(0)
        self.body = "\n".join(lines).strip("\n")


def directive(token):
    """The directive in a block, or None."""
    fenced = token.type in {"fence", "colon_fence"} and token.info.strip().startswith("{")
    return Directive(token) if fenced else None


def blocks(text):
    """Blocks other than running text: directives, code, formulas, targets, comments, HTML."""
    kinds = {"fence", "colon_fence", "code_block", "math_block", "math_block_label"}
    kinds |= {"myst_target", "myst_line_comment", "html_block"}
    return [token for token in parser().parse(text) if token.type in kinds]


def numbered(text):
    """The labelled elements of a text in order: kind, label, and name if there is no number."""
    for token in blocks(text):
        box = directive(token)
        if token.type == "math_block_label":
            yield "", token.info, None
        elif token.type == "myst_target":
            title = re.search(rf"\({token.content}\)=\s*\n#+ (.*)", text)
            yield "", token.content, CLASSED.sub("", title[1]).strip() if title else token.content
        elif box is not None:
            boxed = box.name.partition("prf:")[2].capitalize()
            kind = "Exercise" if box.name == "exercise-start" else boxed
            if kind and kind != "Proof":
                yield kind, box.options.get("label"), None
            yield from numbered(box.body)


@functools.lru_cache
def labels():
    """``{label: (name as on the site, page)}`` for everything that can be referred to."""
    found = {}
    without_number = collections.Counter()  # the site counts on over pages without a number
    for page, chapter in pages().items():
        counts = collections.Counter() if chapter else without_number
        for cell in read(page).cells:
            figure = cell.metadata.get("mystnb", {}).get("figure")
            drawn = [("Fig.", figure.get("name"), None)] if figure else []
            for kind, label, name in drawn if cell.cell_type == "code" else numbered(cell.source):
                if name is None:
                    counts[kind] += 1
                    name = f"{kind} {chapter}{'.' if chapter else ''}{counts[kind]}".strip()
                found[label or (page, name)] = (name, page)
    return found


@functools.lru_cache
def base():
    """The address of the site."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf8"))
    return config["html"]["baseurl"]


@functools.lru_cache
def citations():
    """``{key: (authors, year, address)}`` of the bibliography."""
    found = {}
    for key, entry in parse_file(str(ROOT / "book" / "references.bib")).entries.items():
        names = [" ".join(map(str, each.rich_last_names)) for each in entry.persons["author"]]
        authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        fields = entry.fields
        link = f"https://doi.org/{fields['doi']}" if "doi" in fields else fields.get("url", "")
        found[key] = (authors, fields["year"], link)
    return found


def values(notebook):
    """The glued values of an executed notebook: ``{name: {kind of content: content}}``."""
    found = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            glued = output.get("metadata", {}).get("scrapbook")
            if glued:
                start = len(glued["mime_prefix"])
                found[glued["name"]] = {kind[start:]: data for kind, data in output.data.items()}
    return found


class Page:
    """Translator of the Markdown of one page, with the values that its code has glued."""

    def __init__(self, source, values):
        self.source = source
        self.values = values

    def markdown(self, text):
        """Plain Markdown for a piece of the page."""
        lines = text.split("\n")
        done = []
        at = 0
        for token in blocks(text):
            start, end = token.map
            done.append(self.inline("\n".join(lines[at:start])))
            indent = re.match(r" *", lines[start])[0]
            text = "\n".join(line.removeprefix(indent) for line in lines[start:end])
            plain = self.block(token, text.rstrip())
            done.append("\n".join((indent + line).rstrip() for line in plain.split("\n")))
            at = end
        done.append(self.inline("\n".join(lines[at:])))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(done)).strip("\n")

    def block(self, token, text):
        """One block, given as a token and as its text, both without indentation."""
        if token.type in {"myst_target", "myst_line_comment"}:
            return ""
        if token.type == "math_block_label":
            name, _ = self.label(token.info)
            return f"$$\n{token.content.strip()} \\tag{{{name}}}\n$$"
        found = directive(token)
        return text if found is None else "\n" + self.directive(found) + "\n"

    def directive(self, box):
        """Any directive of the book, by its name."""
        if box.name == "glue":
            return self.glued(box.argument)
        if box.name in {"exercise-end", "solution-end", "index"}:
            return ""
        if box.name == "quiz":
            return quiz(box.argument)
        title = self.inline(box.argument)
        body = self.markdown(box.body)
        if box.name in BOXES:
            return quote(f"**{title or box.name.capitalize()}**\n\n{body}")
        if box.name == "exercise-start":
            name, _ = self.label(box.options.get("label"))
            return f"### {name}: {title}\n\n{body}"
        if box.name == "solution-start":
            return f"{SOLUTION}\n\n{body}"
        if box.name == "prf:proof":
            return f"*Proof.* {body} ∎"
        if box.name.startswith("prf:"):
            name, _ = self.label(box.options.get("label"))
            return f"**{name}** ({title})**.** {body}" if title else f"**{name}.** {body}"
        if box.name == "tab-item":
            return f"**{title}**\n\n{body}"
        if box.name == "card":
            return f"**[{title}]({self.link(box.options['link'] + '.md')})**: {body}"
        if box.name in {"tab-set", "grid", "grid-item"}:
            return body
        raise Untranslated(f"{self.source.name}: no plain form of the directive {{{box.name}}}")

    def glued(self, name):
        """A table as HTML with its marks written out."""
        html = self.value(name).get("text/html")
        if html is None:
            raise Untranslated(f"{self.source.name}: {name!r} is no table; use {{glue:text}}")
        table = re.sub(r"<style.*?</style>\s*", "", html, flags=re.DOTALL)
        table = re.sub(r' data-csv="[^"]*"', "", table)
        table = re.sub(r'(<td class="[^"]*best[^"]*">)([^<]+)', r"\1<b>\2</b>", table)
        mark = ' style="background-color:#cde8d5;color:#000"'
        return re.sub(r'(<td class="[^"]*win[^"]*")', rf"\1{mark}", table).strip()

    def caption(self, label, text):
        """Number and caption of a figure."""
        name, _ = self.label(label)
        return f"**{name}:** {self.inline(' '.join(text.split()))}"

    def inline(self, text):
        """Running text: roles, words with a class, links."""
        text = SPAN.sub(lambda span: self.role(span) if span[1] else span[0], text)
        text = CLASSED.sub(r"*(\1)*", text)
        return TARGET.sub(lambda found: f"]({self.link(found[1])})", text)

    def role(self, span):
        """Any role of the book, by its name."""
        name, content = span[1], span[3]
        named = re.fullmatch(r"(.*?)\s*<([^<>]+)>", content, re.DOTALL)
        words, label = named.groups() if named else ("", content)
        if name == "glue:text":
            return self.text(label)
        if name in {"eq", "ref", "numref", "prf:ref"}:
            number, page = self.label(label)
            words = words or (f"({number})" if name == "eq" else number)
            return words if page == self.source else f"[{words}]({self.relative(page)})"
        if name in {"cite:t", "cite:p"}:
            return self.citation(name, label)
        raise Untranslated(f"{self.source.name}: no plain form of the role {{{name}}}")

    def label(self, label):
        """Name and page of a labelled element."""
        if label not in labels():
            raise Untranslated(f"{self.source.name}: nothing in the book has the label {label!r}")
        return labels()[label]

    def value(self, name):
        """The value that the code has glued under a name."""
        if name not in self.values:
            raise Untranslated(f"{self.source.name}: no cell glues {name!r}")
        return self.values[name]

    def text(self, name):
        """A glued value in a sentence, by its name or, as myst-nb has it, by ``name:format``."""
        name, _, fmt = name.partition(":")
        return format_plain_text(self.value(name)["text/plain"], fmt)

    def citation(self, role, keys):
        cited = []
        for key in keys.split(","):
            authors, year, link = citations()[key.strip()]
            words = f"{authors} ({year})" if role == "cite:t" else f"{authors}, {year}"
            cited.append(f"[{words}]({link})" if link else words)
        return ", ".join(cited) if role == "cite:t" else f"({'; '.join(cited)})"

    def link(self, target):
        """The target of a link: the notebook of a page that has one, a heading as Jupyter says."""
        if target.startswith("course:"):
            return f"{base()}course/{target.removeprefix('course:')}"
        if target.startswith("explore:"):  # sliders move on the site only
            figure, _, state = target.removeprefix("explore:").partition("?")
            page = self.source.relative_to(ROOT).with_suffix(".html").as_posix()
            return f"{base()}{page}?{state}#explore-{figure}"
        if target in labels():
            return self.relative(labels()[target][1])
        path, _, anchor = target.partition("#")
        if not path and anchor:
            slugs = {slug(title): title for title in headings(self.source)}
            return "#" + slugs.get(anchor, anchor).replace(" ", "-")
        page = Path(os.path.normpath(self.source.parent / path))
        return self.relative(page) if page in pages() else target

    def relative(self, page):
        target = page.with_suffix(".ipynb") if has_code(page) else page
        return Path(os.path.relpath(target, self.source.parent)).as_posix()


@functools.lru_cache
def has_code(page):
    """Whether a page has code cells, and so a notebook beside it."""
    return any(cell.cell_type == "code" for cell in read(page).cells)


def headings(source):
    return re.findall(r"^#+ (.*)$", source.read_text(encoding="utf8"), re.MULTILINE)


def slug(title):
    return re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-")


def quiz(chapter):
    """A chapter's quiz as a list of questions, and how a notebook checks an answer."""
    questions = exercises.quiz(chapter)
    lines = [f'Answer with a letter or a number, as in `check("{questions[0].name}", "a")`']
    lines[0] += ", after `from drocox.exercises import check`."
    for question in questions:
        lines.append(f"**`{question.name}`** {question.text}")
        choices = [f"- {letter}. {text}" for letter, text in question.choices.items()]
        if choices:
            lines.append("\n".join(choices))
    return "\n\n".join(lines)


def quote(text):
    """A block quote. Formulas stay on one line: some viewers would take ">" for a part of them."""
    text = FORMULA.sub(lambda formula: " ".join(formula[0].split()), text)
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def cells(notebook, source, values):
    """The cells of a page in plain Markdown, those with code unchanged.

    Exercises begin cells of their own. The heading of a solution is a cell, too, and JupyterLab
    folds everything below it, up to the next heading. Code that the site folds or leaves out is
    folded as well. A figure's caption follows its cell. ``values`` are those of :func:`values`.
    """
    done = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if HIDDEN & set(cell.metadata.get("tags", [])):
                cell.metadata["jupyter"] = {"source_hidden": True}
            done.append(cell)
            figure = cell.metadata.get("mystnb", {}).get("figure")
            if figure:
                text = Page(source, values).caption(figure.name, figure.caption)
                done.append(nbformat.v4.new_markdown_cell(text))
            continue
        starts = re.split(r"^(?=```\{(?:exercise|solution)-start\})", cell.source, flags=re.M)
        for piece in starts:
            text = Page(source, values).markdown(piece)
            if LEFT.search(re.sub(r"```.*?```|`[^`]*`", "`code`", text, flags=re.DOTALL)):
                raise Untranslated(f"{source.name}: markup of the book is left in\n{text}")
            if text.startswith(SOLUTION):
                folded = {"jp-MarkdownHeadingCollapsed": True}
                done.append(nbformat.v4.new_markdown_cell(SOLUTION, metadata=folded))
                text = text.removeprefix(SOLUTION).strip("\n")
            if text:
                done.append(nbformat.v4.new_markdown_cell(text))
    return done
