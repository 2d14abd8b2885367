"""Sphinx extension: add scripts and style of explorables to the pages that have one.

An explorable is a ``figure`` with the name of its script in ``data-explore``; it is made by
``drocox.explorables`` and its scripts are in ``book/_static/explore``.
"""

import re

STYLE = "explore/explore.css"


def scripts(markup):
    """Scripts, in order and relative to ``_static``, that the explorables in some HTML need."""
    kinds = sorted(set(re.findall(r'<figure[^>]*\sdata-explore="([\w-]+)"', markup)))
    return [f"explore/{name}.js" for name in ["common", *kinds]] if kinds else []


def tags(markup, folder):
    """HTML that loads these scripts and their style where ``explore`` was copied into a folder."""
    needed = scripts(markup)
    loads = [f'<script defer src="{folder}/{name}"></script>' for name in needed]
    style = [f'<link rel="stylesheet" href="{folder}/{STYLE}">'] if needed else []
    return "\n".join([*style, *loads])


def equip(app, pagename, templatename, context, doctree):
    """On html-page-context. Files added here are added to this page only."""
    needed = scripts(context.get("body") or "")
    for name in needed:
        app.add_js_file(name, loading_method="defer")
    if needed:
        app.add_css_file(STYLE)


def setup(app):
    """Called by Sphinx."""
    app.connect("html-page-context", equip)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
