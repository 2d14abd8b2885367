"""Sphinx extension: figures on large and small screens.

A figure of about five inches can be read on a phone as it is. A wider one keeps a width at which
its letters can be read, and scrolls sideways. The size of every figure is in the HTML, so that the
layout does not shift when it is loaded.
"""

import re
from pathlib import Path

from docutils import nodes

WIDE = 380  # points. Narrower pictures can be read on a phone when they are made to fit it
READABLE = 0.68  # letters of 10 points, the smallest in our figures, are then 9 pixels high
FIGURE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"/]+\.svg)")')


def size(svg):
    """Width and height of an SVG in points, or zeros if it does not have them."""
    sizes = [re.search(rf'<svg[^>]*\s{side}="([\d.]+)pt"', svg) for side in ("width", "height")]
    return tuple(float(found[1]) if found else 0.0 for found in sizes)


def frame(app, doctree, docname):
    """On doctree-resolved. A box around each wide figure, in which it scrolls."""
    if app.builder.format != "html":
        return
    for picture in list(doctree.findall(nodes.image)):
        file = Path(app.srcdir, picture["uri"])
        if file.suffix != ".svg" or not file.exists():
            continue
        width, _ = size(file.read_text(encoding="utf8"))
        if width > WIDE:
            opening = f'<div class="wide-picture" style="--least: {READABLE * width / 12:.1f}rem">'
            place = picture.parent.index(picture)
            picture.parent.insert(place + 1, nodes.raw("", "</div>", format="html"))
            picture.parent.insert(place, nodes.raw("", opening, format="html"))


def tell_sizes(app, pagename, templatename, context, doctree):
    """On html-page-context. Write width and height of figures: browsers reserve the space."""
    if doctree is None:
        return
    files = {name: Path(app.srcdir, uri) for uri, name in app.builder.images.items()}

    def sized(image):
        file = files.get(image[1])
        width, height = size(file.read_text(encoding="utf8")) if file else (0.0, 0.0)
        pixels = f'width="{round(width * 4 / 3)}" height="{round(height * 4 / 3)}"'
        return f"<img {pixels} " if width else image[0]

    context["body"] = FIGURE.sub(sized, context["body"])


def setup(app):
    """Called by Sphinx."""
    app.connect("doctree-resolved", frame, priority=900)
    app.connect("html-page-context", tell_sizes, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
