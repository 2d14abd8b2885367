"""Sphinx extension: never show a number that today's code would not compute.

It chooses the execution cache by :mod:`cache_key`, runs the chapters on all cores, lets launch and
download buttons give the executed notebook, and makes a page with a warning fail again until the
warning is gone.

`make test` executes every chapter once, too, and there it is nbval that does it: it runs the twins
and compares what comes out with what they hold. The pages that the other tests look at are built
from the outputs of the twins, in a folder of their own (``DROCOX_OUTPUTS=twins``, which is set by
``tests/conftest.py``). `make book` never looks at a twin.
"""

import gc
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).parent))
import cache_key
import golden

logger = logging.getLogger(__name__)
KEPT = 3  # caches on disk: switching between two branches stays fast


def from_twins():
    """Whether pages show the outputs of the twins, which nbval compares with today's."""
    return os.environ.get("DROCOX_OUTPUTS") == "twins"


def choose_cache(app, config):
    """On config-inited. Sphinx sees a changed setting and reads every chapter again."""
    root = Path(app.srcdir)
    path = cache_key.twins_path(root) if from_twins() else cache_key.cache_path(root)
    path.mkdir(parents=True, exist_ok=True)
    os.utime(path)
    others = [p for p in path.parent.iterdir() if p.is_dir() and p != path]
    others.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    for old in others[KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    config.nb_execution_cache_path = str(path)


def copy_twins(app):
    """On builder-inited. Put the outputs of the twins into the cache, where that is asked for.

    A chapter whose cells are not those of its twin is left to :func:`fill_cache`.
    """
    if not from_twins():
        return
    cache = get_cache(app.config.nb_execution_cache_path)
    for source in golden.chapters(Path(app.srcdir)):
        notebook = golden.read(source)
        cells = golden.code_cells(notebook)
        of_twin = golden.twin_cells(source)
        if [cell.source for cell in cells] != [cell.source for cell in of_twin]:
            continue
        for count, (cell, twin) in enumerate(zip(cells, of_twin, strict=True), start=1):
            cell.outputs = twin.outputs
            cell.execution_count = count
        bundle = CacheBundleIn(notebook, str(source), data={"execution_seconds": 0.0})
        cache.cache_notebook_bundle(bundle, overwrite=True)


def fill_cache(app):
    """On builder-inited. Run the chapters that the cache does not know, on all cores.

    Left to itself the build runs them one by one. A chapter that fails stays out of the cache: the
    build runs it again and says what is wrong.
    """
    root = Path(app.srcdir)
    cache = get_cache(app.config.nb_execution_cache_path)
    missing = []
    for source in golden.chapters(root):
        notebook = golden.read(source)
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            missing.append((source, notebook))
    if len(missing) < 2:
        return
    logger.info(f"running {len(missing)} chapters")

    def run(job):
        source, notebook = job
        result = single_nb_execution(
            notebook,
            cwd=str(source.parent),
            timeout=app.config.nb_execution_timeout,
            allow_errors=False,
            meta_override=True,
        )
        return source, notebook, result

    with ThreadPoolExecutor(min(os.cpu_count(), 8)) as pool:
        for source, notebook, result in pool.map(run, missing):
            if result.err is None:
                data = {"execution_seconds": result.time}
                bundle = CacheBundleIn(notebook, str(source), data=data)
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
                logger.info(f"{source.relative_to(root)}: {result.time:.1f} s")


def point_at_twins(app, pagename, templatename, context, doctree):
    """On html-page-context, after the theme. Launch buttons open X.ipynb, even a future one."""
    for button in context.get("header_buttons", []):
        for launch in button.get("buttons", []) if button.get("label") == "launch-buttons" else []:
            launch["url"] = launch["url"].replace(f"{pagename}.md", f"{pagename}.ipynb")


def write_downloads(app, exception):
    """On build-finished. Put outputs into the notebooks behind the download buttons.

    On a cache hit myst-nb writes them without.
    """
    if exception is not None or app.builder.name != "html":
        return
    root = Path(app.srcdir)
    for source in golden.chapters(root):
        target = Path(app.outdir, "_sources", source.relative_to(root)).with_suffix(".ipynb")
        if target.exists():
            cache = app.config.nb_execution_cache_path
            golden.write(golden.executed_notebook(source, root, cache), target)


def forget_faulty_pages(app, exception):
    """On build-finished. Else a second build would not read the faulty page again, and pass."""
    if app._warncount:
        Path(app.doctreedir, "environment.pickle").unlink(missing_ok=True)


def setup(app):
    """Called by Sphinx."""
    gc.set_threshold(50_000, 20, 100)  # seldom: a build keeps most of what it makes
    os.environ.update(cache_key.kernel_environment())
    app.connect("config-inited", choose_cache)
    app.connect("builder-inited", copy_twins)
    app.connect("builder-inited", fill_cache)
    app.connect("html-page-context", point_at_twins, priority=900)
    app.connect("build-finished", write_downloads)
    app.connect("build-finished", forget_faulty_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
