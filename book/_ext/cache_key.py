"""Sphinx extension: never show a number that today's code would not compute.

The execution cache of Jupyter Book looks only at a chapter's own cells. A change in the package, in
the stored results or in NumPy would leave every old output in place, even after a full rebuild.
Here the folder of the cache is named after all of these, so such a change starts an empty cache.

It also runs the chapters on all cores, lets launch and download buttons give the executed notebook,
and makes a page with a warning fail again until the warning is gone.
"""

import hashlib
import os
import platform
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

from sphinx.util import logging

logger = logging.getLogger(__name__)

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ("drocox", "book/_ext", "book/results", "book/claims.yml")
PACKAGES = (
    "ipykernel",
    "lifelines",
    "matplotlib",
    "matplotlib-inline",
    "numba",
    "numpy",
    "pandas",
    "scikit-learn",
    "scikit-survival",
    "scipy",
    "survivors",
    "torch",
)
KEPT = 3  # caches on disk: switching between two branches stays fast

# One thread and one hash seed, so that sums and the order of sets are the same on every run.
KERNEL_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}


def kernel_environment(root=ROOT):
    """What kernels inherit, for the build here and for nbval in ``book/conftest.py``.

    Their IPython has a profile of its own: a reader's start-up files change nothing in the book.
    """
    profile = root / "_build" / ".ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(
        "c.IPKernelApp.log_level = 40\nc.HistoryManager.enabled = False\n"
    )
    return KERNEL_ENVIRONMENT | {"IPYTHONDIR": str(profile.parent)}


def cache_key(root=ROOT):
    """Hash of everything that decides the outputs, except the cells themselves."""
    digest = hashlib.sha256()
    for entry in INPUTS:
        path = root / entry
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if not file.is_file() or file.suffix in {".pyc", ".nbc", ".nbi"}:
                continue
            if "parts" in file.parts or file.name == ".lock":  # a sweep that is not finished
                continue
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{file.relative_to(root).as_posix()} {content}\n".encode())
    digest.update(f"python {platform.python_version()}\n".encode())
    for name in PACKAGES:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = "absent"
        digest.update(f"{name} {version}\n".encode())
    digest.update(repr(sorted(KERNEL_ENVIRONMENT.items())).encode())
    return digest.hexdigest()[:16]


def cache_path(root=ROOT):
    return root / "_build" / ".jupyter_cache" / cache_key(root)


def choose_cache(app, config):
    """On config-inited. Sphinx sees a changed setting and reads every chapter again."""
    path = cache_path(Path(app.srcdir))
    path.mkdir(parents=True, exist_ok=True)
    os.utime(path)
    others = [p for p in path.parent.iterdir() if p.is_dir() and p != path]
    others.sort(key=lambda p: p.stat().st_mtime, reverse=True)
    for old in others[KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)
    config.nb_execution_cache_path = str(path)


def fill_cache(app):
    """On builder-inited. Run the chapters that the cache does not know, on all cores.

    Left to itself the build runs them one by one. A chapter that fails stays out of the cache: the
    build runs it again and says what is wrong.
    """
    from golden import chapters, read
    from jupyter_cache import get_cache
    from jupyter_cache.base import CacheBundleIn
    from jupyter_cache.executors.utils import single_nb_execution

    root, cache = Path(app.srcdir), get_cache(app.config.nb_execution_cache_path)
    missing = []
    for source in chapters(root):
        notebook = read(source, root)
        try:
            cache.match_cache_notebook(notebook)
        except KeyError:
            missing.append((source, notebook))
    if len(missing) < 2:
        return
    logger.info(f"running {len(missing)} chapters")

    def run(job):
        source, notebook = job
        return (
            source,
            notebook,
            single_nb_execution(
                notebook,
                cwd=str(source.parent),
                timeout=app.config.nb_execution_timeout,
                allow_errors=False,
                meta_override=True,
            ),
        )

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
    from golden import chapters, executed_notebook, write

    root, cache = Path(app.srcdir), app.config.nb_execution_cache_path
    for source in chapters(root):
        target = Path(app.outdir, "_sources", source.relative_to(root)).with_suffix(".ipynb")
        if target.exists():
            write(executed_notebook(source, root, cache), target)


def forget_faulty_pages(app, exception):
    """On build-finished. Else a second build would not read the faulty page again, and pass."""
    if app._warncount:
        Path(app.doctreedir, "environment.pickle").unlink(missing_ok=True)


def setup(app):
    sys.path.insert(0, str(Path(__file__).parent))
    os.environ.update(kernel_environment())
    app.connect("config-inited", choose_cache)
    app.connect("builder-inited", fill_cache)
    app.connect("html-page-context", point_at_twins, priority=900)
    app.connect("build-finished", write_downloads)
    app.connect("build-finished", forget_faulty_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
