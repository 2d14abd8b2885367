"""The slides of the lecture: words from book/teaching/lecture.md, all else from the chapters.

Slides are separated by ``---``; what follows a line ``Note:`` is for the speaker. Formulas, code,
pictures, sliders and numbers are not written there but fetched from where the book has them:

    {glue:text}`method/dual :: dual-active`    a number of a chapter's text
    {output}`method/dual :: beside(`           what its cell with these words in the code shows
    {formula}`eq-dual-bound`                   a formula by its label
    {figure}`fig-next`                         a figure by its label
"""

import base64
import hashlib
import html
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from string import Template

import formulas
import nbformat
import plain
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

REVEAL = "reveal.js@6.0.2"
SHA512 = "JYIg5D9aoxoaLeb84O+OvAwsKWdIavVgEDScxtYEXFCT6t6TQrhNtSgogcjdCpdLsWglhJn3zyE3fUOwiH5KEg=="
FILES = ("reveal.js", "reveal.css", "theme/white.css", "plugin/notes.js")  # of its folder dist
REFERENCE = re.compile(r"\{(glue:text|formula|figure|output)\}`([^`]+)`")


class Chapters:
    """What slides take from the chapters, which are named without "book/"."""

    def __init__(self, root):
        self.root = root
        self.sources = {
            page.relative_to(root / "book").with_suffix("").as_posix(): page
            for page in plain.pages(root)
        }
        self.twins = {
            name: nbformat.read(page.with_suffix(".ipynb"), as_version=4)
            for name, page in self.sources.items()
            if page.with_suffix(".ipynb").exists()
        }

    def fetch(self, found):
        """What a reference stands for, as Markdown or HTML."""
        kind, what = found.groups()
        if kind in {"formula", "figure"}:
            return getattr(self, kind)(what)
        name, _, key = what.partition(" :: ")
        source = self.sources.get(name)
        if source is None:
            raise LookupError(f"the lecture refers to {name!r}, and no chapter is called so")
        if kind == "glue:text":
            return plain.Page(source, plain.values(self.twins[name]), self.root).text(key)
        return self.output(name, key)

    def formula(self, label):
        """A formula of the book by its label."""
        number, page = plain.labels(self.root)[label]
        text = page.read_text(encoding="utf8")
        tex = re.search(rf"\$\$((?:(?!\$\$).)*?)\$\$ \({re.escape(label)}\)", text, re.DOTALL)
        return f"$$\n{tex[1].strip()} \\tag{{{number}}}\n$$"

    def figure(self, label):
        """A figure of the book by its label."""
        for twin in self.twins.values():
            for cell in twin.cells:
                if cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == label:
                    return shown(cell)
        raise LookupError(f"the lecture refers to the figure {label!r}, and the book has none")

    def output(self, name, words):
        """What the last cell of a chapter shows that has some words in its code."""
        cells = [c for c in self.twins[name].cells if c.cell_type == "code" and words in c.source]
        if not cells:
            raise LookupError(f"the lecture refers to {words!r} in {name}, and no cell has it")
        return shown(cells[-1])


def shown(cell):
    """What an executed cell shows, as HTML; pictures with the words that describe them."""
    alt = html.escape(cell.metadata.get("mystnb", {}).get("image", {}).get("alt", ""))
    parts = []
    for output in cell.outputs:
        data = output.get("data", {})
        if "scrapbook" in output.get("metadata", {}):
            continue  # a value for the text
        if "image/svg+xml" in data:
            svg = base64.b64encode(data["image/svg+xml"].encode()).decode()
            parts.append(f'<img alt="{alt}" src="data:image/svg+xml;base64,{svg}">')
        else:
            text = html.escape(output.get("text") or data.get("text/plain", ""))
            parts.append(data.get("text/html") or f"<pre>{text}</pre>")
    if not parts:
        raise LookupError(f"the lecture refers to a cell that shows nothing: {cell.source[:60]!r}")
    # In one block of HTML, which for Markdown ends at an empty line.
    return re.sub(r"\n\s*\n", "\n", f'<div class="output">{"".join(parts)}</div>')


def sections(text, chapters):
    """The slides as HTML, from the source of the lecture."""
    markdown = MarkdownIt("commonmark").enable("table")
    markdown.use(dollarmath_plugin, renderer=tex, allow_space=True)
    done = []
    for slide in re.split(r"^---\n", text, flags=re.MULTILINE):
        shown, _, note = slide.partition("\nNote:\n")
        body = markdown.render(REFERENCE.sub(chapters.fetch, shown))
        aside = markdown.render(REFERENCE.sub(chapters.fetch, note))
        done.append(f'<section>\n{body}<aside class="notes">{aside}</aside>\n</section>')
    return "\n".join(done)


def tex(content, options):
    """A formula, set."""
    return formulas.typeset(content, options["display_mode"])


def reveal(target):
    """Fetch reveal.js from the npm registry, and put what slides need of it into a folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("slides need reveal.js from the npm registry: install npm, run this again")
    command = [npm, "pack", "--silent", "--pack-destination", str(target), REVEAL]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    package = next(target.glob("*.tgz"))
    found = base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode()
    if found != SHA512:
        raise SystemExit(f"{REVEAL} is not the file that this book was tried with: {found}")
    with tarfile.open(package) as archive:
        for name in FILES:
            data = archive.extractfile(f"package/dist/{name}").read()
            (target / Path(name).name).write_bytes(data)
    package.unlink()


def write(root, target):
    """The lecture as a folder that a browser opens without any other host."""
    target.mkdir(parents=True, exist_ok=True)
    teaching = root / "book" / "teaching"
    text = (teaching / "lecture.md").read_text(encoding="utf8")
    page = Template((teaching / "lecture.html").read_text(encoding="utf8")).substitute(
        title=html.escape(re.search(r"^# (.*)$", text, re.MULTILINE)[1]),
        style=(teaching / "lecture.css").read_text(encoding="utf8"),
        slides=sections(text, Chapters(root)),
    )
    (target / "index.html").write_text(page, encoding="utf8")
    reveal(target)
    shutil.copytree(formulas.KATEX, target / "katex", dirs_exist_ok=True)
