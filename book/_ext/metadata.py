"""Sphinx extension: what search engines, reference managers and previews are told about a page.

Canonical addresses come from Sphinx, which is told ``html_baseurl``. Here each page gets the tags
``citation_*`` of reference managers, a record of schema.org (JSON-LD) and the picture that is shown
with a link to it; the site gets ``sitemap.xml``. What is said is that of ``CITATION.cff`` and
``codemeta.json``.
"""

import html
import json
import re
from pathlib import Path
from xml.sax.saxutils import escape

import matplotlib.pyplot as plt
import yaml
from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
PREVIEW = "_static/preview.png"
SIZE = (1200, 630)  # pixels, as previews have them
INK = "#1f2429"
BLUE = "#0072B2"
ORANGE = "#D55E00"
STEPS = [(0, 1), (1, 0.8), (2.5, 0.62), (4.2, 0.45), (6, 0.3), (7.4, 0.18), (9, 0.18)]


def citation():
    """What ``CITATION.cff`` says."""
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf8"))


def record():
    """What ``codemeta.json`` says."""
    return json.loads((ROOT / "codemeta.json").read_text(encoding="utf8"))


def plain_title(context):
    """The title of a page without tags, and without the number of a chapter."""
    text = html.unescape(re.sub("<[^>]+>", "", context.get("title", "")))
    return re.sub(r"^\d+\. ", "", text).strip()


def citation_tags(title, address, is_front):
    """Names and contents of the tags for reference managers."""
    work = citation()
    tags = [("citation_title", work["title"] if is_front else title)]
    if not is_front:
        tags.append(("citation_inbook_title", work["title"]))
    tags += [("citation_author", author["name"]) for author in work["authors"]]
    tags.append(("citation_language", "en"))
    tags.append(("citation_public_url", address))
    return tags


def linked_data(title, address, base, is_front):
    """A page as schema.org describes it: the book on its first page, else one of its chapters."""
    work = citation()
    known = record()
    book = {
        "@type": "Book",
        "name": work["title"],
        "url": base,
        "version": work["version"],
        "author": known["author"],
        "license": known["license"],
    }
    if is_front:
        more = {
            "description": known["description"],
            "keywords": known["keywords"],
            "inLanguage": "en",
            "citation": known["referencePublication"],
            "workExample": {
                "@type": "SoftwareSourceCode",
                "name": known["name"],
                "codeRepository": known["codeRepository"],
                "programmingLanguage": known["programmingLanguage"],
            },
        }
        return {"@context": "https://schema.org", **book, **more}
    chapter = {"@type": "Chapter", "name": title, "url": address, "inLanguage": "en"}
    return {"@context": "https://schema.org", **chapter, "isPartOf": book}


def tell(app, pagename, templatename, context, doctree):
    """On html-page-context. Tags and record of a page of the book."""
    base = app.config.html_baseurl
    if doctree is None or not base:
        return
    address = f"{base}{pagename}.html"
    is_front = pagename == app.config.root_doc
    title = plain_title(context)
    lines = [
        f'<meta name="{name}" content="{html.escape(text)}" />'
        for name, text in citation_tags(title, address, is_front)
    ]
    lines.append(f'<meta property="og:image" content="{base}{PREVIEW}" />')
    lines.append(f'<meta property="og:image:width" content="{SIZE[0]}" />')
    lines.append(f'<meta property="og:image:height" content="{SIZE[1]}" />')
    lines.append('<meta name="twitter:card" content="summary_large_image" />')
    data = json.dumps(linked_data(title, address, base, is_front), ensure_ascii=False)
    data = data.replace("</", "<\\/")  # nothing in a script may end it
    lines.append(f'<script type="application/ld+json">{data}</script>')
    context["metatags"] += "\n" + "\n".join(lines)


def draw_preview(title) -> Figure:
    """The picture that is shown with a link: the title above a curve of survival."""
    figure = plt.figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor="white")
    curve = figure.add_axes((0.08, 0.1, 0.84, 0.42))
    times, shares = zip(*STEPS, strict=True)
    curve.step(times, shares, where="post", color=BLUE, lw=8)
    curve.step(times, [0.8 * share for share in shares], where="post", color=ORANGE, lw=8)
    curve.set_axis_off()
    figure.text(0.08, 0.78, title, size=34, weight="bold", color=INK, wrap=True)
    figure.text(0.08, 0.64, "an executable book: drocox", size=26, color=INK)
    return figure


def sitemap(addresses):
    """A map of the site, as search engines read it."""
    lines = [f"  <url><loc>{escape(address)}</loc></url>" for address in addresses]
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    head += '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
    return head + "\n".join(lines) + "\n</urlset>\n"


def write_files(app, error):
    """On build-finished. The map and the picture."""
    base = app.config.html_baseurl
    if error is not None or app.builder.name != "html" or not base:
        return
    addresses = [f"{base}{name}.html" for name in sorted(app.env.found_docs)]
    out = Path(app.outdir)
    (out / "sitemap.xml").write_text(sitemap(addresses), encoding="utf8")
    figure = draw_preview(app.config.html_title)
    (out / PREVIEW).parent.mkdir(exist_ok=True)
    figure.savefig(out / PREVIEW, metadata={"Software": None})
    plt.close(figure)


def setup(app):
    """Called by Sphinx."""
    app.connect("html-page-context", tell, priority=950)
    app.connect("build-finished", write_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
