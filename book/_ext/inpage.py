"""Sphinx extension: what a page needs to run Python in the browser.

``_static/python/packages.zip`` holds the package without stored results, and the packages that it
needs besides those of Pyodide's distribution, as they are in this environment: their Python files
and licences. ``worker.js`` unpacks it.
"""

import zipfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BESIDES = ("jinja2", "markupsafe", "tqdm")  # pure Python; MarkupSafe's compiled part is optional
RESULTS = ROOT / "drocox" / "paper" / "results"
LEFT_OUT = {"__pycache__", "plans"}
DAY = (2026, 1, 1, 0, 0, 0)  # equal contents make equal files


def members():
    """Files of the archive, by their names in it."""
    found = {"drocox/LICENSE": ROOT / "LICENSE"}
    for path in (ROOT / "drocox").rglob("*"):
        if path.is_file() and not LEFT_OUT & set(path.parts) and RESULTS not in path.parents:
            found[path.relative_to(ROOT).as_posix()] = path
    for package in BESIDES:
        for file in metadata.files(package):
            if file.suffix == ".py" or "LICEN" in file.name.upper():
                found[file.as_posix()] = Path(file.locate())
    return found


def pack(app, error):
    """On build-finished. Write the archive."""
    if error is not None or app.builder.format != "html":
        return
    target = Path(app.outdir, "_static", "python", "packages.zip")
    with zipfile.ZipFile(target, "w") as archive:
        for name, path in sorted(members().items()):
            information = zipfile.ZipInfo(name, DAY)
            archive.writestr(information, path.read_bytes(), zipfile.ZIP_DEFLATED)


def setup(app):
    """Called by Sphinx."""
    app.connect("build-finished", pack)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
