"""Sphinx extension: figures as large and small screens show them.

A phone gets the narrow variant of a figure, whose panels stand below each other, where the figure
has one (:mod:`drocox.narrow`). Between a phone and a desk, and where there is none, a wide figure
keeps a width at which its letters can be read, and scrolls under the thumb. The size of every
figure stands in the page, so that nothing moves when it arrives.
"""

import base64
import gzip
import re
import sys
from pathlib import Path

from docutils import nodes
from jupyter_cache import get_cache

sys.path.insert(0, str(Path(__file__).parent))
import golden

NARROW = "narrow"  # the key in the metadata of an output
SVG = "image/svg+xml"
WIDE = 380  # points. Narrower pictures can be read on a phone when they are made to fit it
READABLE = 0.76  # letters of 9 points, the smallest in our figures, are then 9 pixels high
PHONE = "(max-width: 600px)"
FIGURE = re.compile(r'<img (?=[^>]*src="[^"]*_images/([^"/]+\.svg)")')


def size(svg):
    """Width and height in points of an SVG that tells them, otherwise zeros."""
    sizes = [re.search(rf'<svg[^>]*\s{side}="([\d.]+)pt"', svg) for side in ("width", "height")]
    return tuple(float(found[1]) if found else 0.0 for found in sizes)


def pixels(svg):
    """The same as attributes of HTML."""
    width, height = (round(side * 4 / 3) for side in size(svg))
    return f'width="{width}" height="{height}"'


def readable(svg):
    """The least width at which the letters of a figure can be read."""
    return f"{READABLE * size(svg)[0] / 12:.1f}rem"


def narrow_variants(source, cache):
    """Narrow drawings of a chapter's figures, by the SVG of the wide ones; the rest has none."""
    try:
        _, notebook = get_cache(cache).merge_match_into_notebook(golden.read(source))
    except KeyError:
        return {}
    found = {}
    for cell in golden.code_cells(notebook):
        for output in cell.outputs:
            packed = output.get("metadata", {}).get(SVG, {}).get(NARROW)
            kinds = [
                kind for kind in output.get("data", {}) if kind.endswith(SVG)
            ]  # glue adds words
            for kind in kinds if packed else ():
                wide = "\n".join(output.data[kind].splitlines())
                found[wide] = gzip.decompress(base64.b64decode(packed)).decode("utf8")
    return found


def frame(app, doctree, docname):
    """On doctree-resolved. A box around each wide figure; its narrow variant as a file."""
    if app.builder.format != "html":
        return
    pictures = [p for p in doctree.findall(nodes.image) if p["uri"].endswith(".svg")]
    files = {picture: Path(app.srcdir, picture["uri"]) for picture in pictures}
    files = {picture: file for picture, file in files.items() if file.exists()}
    if not files:
        return
    cache = getattr(app.config, "nb_execution_cache_path", "")  # none where no page is a notebook
    variants = narrow_variants(Path(app.env.doc2path(docname)), cache) if cache else {}
    for picture, file in files.items():
        svg = file.read_text(encoding="utf8")
        width, _ = size(svg)
        if width <= WIDE:
            continue
        least = f"--least: {readable(svg)}"
        if svg in variants:
            least += f"; --least-narrow: {readable(variants[svg])}"
        opening = f'<div class="wide-picture" style="{least}">'
        closing = "</div>"
        if svg in variants:
            name = f"{file.stem}-narrow.svg"
            target = Path(app.outdir, "_images", name)
            target.parent.mkdir(exist_ok=True)
            target.write_text(variants[svg], encoding="utf8")
            address = "../" * docname.count("/") + f"_images/{name}"
            opening += f'<picture><source media="{PHONE}" srcset="{address}" '
            opening += f"{pixels(variants[svg])} />"
            closing = "</picture></div>"
        place = picture.parent.index(picture)
        picture.parent.insert(place + 1, nodes.raw("", closing, format="html"))
        picture.parent.insert(place, nodes.raw("", opening, format="html"))


def tell_sizes(app, pagename, templatename, context, doctree):
    """On html-page-context. Width and height of figures: browsers keep a place for them."""
    if doctree is None:
        return
    files = {name: Path(app.srcdir, uri) for uri, name in app.builder.images.items()}

    def sized(image):
        file = files.get(image[1])
        svg = file.read_text(encoding="utf8") if file else ""
        return f"<img {pixels(svg)} " if size(svg)[0] else image[0]

    context["body"] = FIGURE.sub(sized, context["body"])


def setup(app):
    """Called by Sphinx."""
    app.connect("doctree-resolved", frame, priority=900)
    app.connect("html-page-context", tell_sizes, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
