"""Sphinx extension: execute the chapters whose outputs are unknown, on all cores; refresh twins.

Jupyter Book keeps outputs in a cache that looks only at a chapter's own cells: a change in the
package, in stored results or in NumPy would leave old numbers on the pages. So the folder of the
cache is named after a hash of all of these. Launch and download buttons lead to the executed twin.

With ``DROCOX_OUTPUTS=twins`` the pages show the outputs of the twins, and only chapters with other
code than their twin are executed. Tests of pages use this: that these are today's outputs is
checked by nbval, so that `make test` executes a chapter only once. `make preview` does the same
with ``DROCOX_OUTPUTS=preview`` and refreshes the twins of changed chapters.
"""

import hashlib
import os
import platform
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from sphinx.util import logging

sys.path.insert(0, str(Path(__file__).parent))
import twins
from plain import ROOT

logger = logging.getLogger(__name__)
KEPT = 3  # caches on disk: switching between two branches stays fast
UNFINISHED = "parts"  # a folder of a sweep under way, which no chapter reads
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
# One thread and one hash seed, so that sums and the order of sets are the same on every run.
KERNEL_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "DROCOX_STRICT": "1",  # guards of sentences stop the build
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
}


def kernel_environment():
    """Environment variables of kernels, for the build here and for nbval in ``book/conftest.py``.

    Their IPython has its own profile, so that a reader's start-up files change nothing in the book.
    """
    profile = ROOT / "_build" / ".ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text(
        "c.IPKernelApp.log_level = 40\nc.HistoryManager.enabled = False\n"
    )
    return KERNEL_ENVIRONMENT | {"IPYTHONDIR": str(profile.parent)}


def digest_of(files, folder=ROOT):
    """A hash of files and their paths in a folder."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(
            f"{file.relative_to(folder)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode()
        )
    return digest.hexdigest()[:16]


def cache_key(package=ROOT / "drocox"):
    """Hash of everything that determines the outputs, except the cells themselves."""
    files = [
        file
        for file in package.rglob("*")
        if file.is_file()
        and file.suffix not in {".pyc", ".nbc", ".nbi", ".lock"}
        and UNFINISHED not in file.parts
    ]
    versions = {name: metadata.version(name) for name in PACKAGES}
    rest = (platform.python_version(), platform.machine(), versions, KERNEL_ENVIRONMENT)
    return hashlib.sha256(f"{digest_of(files, package)} {rest}".encode()).hexdigest()[:16]


def from_twins():
    """Whether pages show the outputs of the twins."""
    return os.environ.get("DROCOX_OUTPUTS") in ("twins", "preview")


def choose_cache(app, config):
    """On config-inited. Sphinx sees a changed setting and reads every page again."""
    caches = ROOT / "_build" / ".jupyter_cache"
    key = cache_key()
    if from_twins():
        key = f"twins-{digest_of((ROOT / 'book').rglob('*.ipynb'))}"
    elif caches.exists() and not (caches / key).exists():
        logger.info("The package, its results or a library changed: all chapters are executed.")
    config.nb_execution_cache_path = str(caches / key)
    config.book_extensions = digest_of(Path(__file__).parent.glob("*.py"))
    (caches / key).mkdir(parents=True, exist_ok=True)
    os.utime(caches / key)
    by_age = sorted(filter(Path.is_dir, caches.iterdir()), key=lambda path: path.stat().st_mtime)
    for old in by_age[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)


def merge_streams(notebook):
    """Join consecutive pieces of printed output: where they were cut depends on timing."""
    for cell in twins.code_cells(notebook):
        merged = []
        for output in cell.outputs:
            if merged and output.output_type == "stream" and output.name == merged[-1].get("name"):
                merged[-1].text += output.text
            else:
                merged.append(output)
        cell.outputs = merged


def execute(source, timeout):
    """A chapter with its outputs, and how long it took; a message if a cell failed."""
    notebook = twins.read(source)
    result = single_nb_execution(
        notebook, cwd=str(source.parent), timeout=timeout, allow_errors=False, meta_override=True
    )
    merge_streams(notebook)
    return notebook, result.time, result.exc_string


def executed(source, cache):
    """A chapter with its outputs from a cache, or None."""
    try:
        return cache.merge_match_into_notebook(twins.read(source))[1]
    except KeyError:
        return None


def with_outputs_of_twin(source):
    """A chapter with the outputs of its twin, or None if the twin has other code."""
    outputs = twins.outputs(source)
    if outputs is None:
        return None
    notebook = twins.read(source)
    for count, cell in enumerate(twins.code_cells(notebook), start=1):
        cell.update(outputs=outputs[count - 1], execution_count=count)
    return notebook


def fill_cache(app):
    """On builder-inited. Execute the chapters that are not in the cache, on all cores.

    A chapter that fails stays out of the cache: the build executes it again and reports the error.
    """
    cache = get_cache(app.config.nb_execution_cache_path)

    def keep(source, notebook):
        bundle = CacheBundleIn(notebook, str(source))
        cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)

    chapters = twins.chapters()
    missing = [source for source in chapters if executed(source, cache) is None]
    if from_twins():
        for source, notebook in [(each, with_outputs_of_twin(each)) for each in missing]:
            if notebook is not None:
                keep(source, notebook)
                missing.remove(source)
    if missing:
        names = ", ".join(source.stem for source in missing)
        logger.info(f"executing {len(missing)} of {len(chapters)} chapters: {names}")
    with ThreadPoolExecutor(min(os.cpu_count(), 8)) as pool:
        timeout = app.config.nb_execution_timeout
        jobs = {pool.submit(execute, source, timeout): source for source in missing}
        for job in as_completed(jobs):
            source = jobs[job]
            notebook, seconds, error = job.result()
            if error is None:
                keep(source, notebook)
                logger.info(f"{source.relative_to(ROOT)}: {seconds:.1f} s")


def point_at_twins(app, pagename, templatename, context, doctree):
    """On html-page-context, after the theme. Launch buttons open X.ipynb, even a future one."""
    for button in context.get("header_buttons", []):
        for launch in button.get("buttons", []) if button.get("label") == "launch-buttons" else []:
            launch["url"] = launch["url"].replace(f"{pagename}.md", f"{pagename}.ipynb")


def refresh_twins(app, exception):
    """On build-finished. Refresh the twins, and put them behind the download buttons."""
    if exception is not None or app.builder.name != "html":
        return
    cache = get_cache(app.config.nb_execution_cache_path)
    kept = os.environ.get("DROCOX_OUTPUTS") == "twins"
    for source in twins.chapters():
        twin = source.with_suffix(".ipynb")
        notebook = executed(source, cache)
        if notebook is None:  # it failed
            continue
        if not kept and twins.refresh(source, notebook):
            logger.info(f"{twin.relative_to(ROOT)}: refreshed, commit it with its chapter")
        target = Path(app.outdir, "_sources", twin.relative_to(ROOT))
        if target.parent.exists():
            shutil.copy(twin, target)
    if not kept:
        twins.PICTURE.write_text(twins.front_picture(), encoding="utf8")
    for path in twins.orphans():
        logger.warning(f"{path.relative_to(ROOT)}: no chapter of this name, delete it")


def forget_faulty_pages(app, exception):
    """On build-finished. Make the next build read faulty pages again; else it would pass."""
    if app._warncount:
        Path(app.doctreedir, "environment.pickle").unlink(missing_ok=True)


def setup(app):
    """Called by Sphinx."""
    os.environ.update(kernel_environment())
    app.add_config_value("book_extensions", "", "env")  # all pages are read again when one changes
    app.connect("config-inited", choose_cache)
    app.connect("builder-inited", fill_cache)
    app.connect("html-page-context", point_at_twins, priority=900)
    app.connect("build-finished", refresh_twins)
    app.connect("build-finished", forget_faulty_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
