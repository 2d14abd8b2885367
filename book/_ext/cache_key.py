"""What decides the outputs of a chapter besides its cells, and the environment its kernel gets.

The execution cache of Jupyter Book looks only at a chapter's own cells. A change in the package, in
the stored results or in NumPy would leave every old output in place, even after a full rebuild.
So the folder of the cache is named after all of these, and such a change starts an empty cache.
"""

import hashlib
import platform
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ("drocox", "book/_ext")  # the package holds the stored results too
UNFINISHED = "drocox/paper/results/parts/"  # stacks of a sweep under way: no chapter reads them
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
    "DROCOX_NARROW": "1",  # figures have a variant for phones
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


def here():
    """The platform of this process, such as "Linux x86_64"."""
    return f"{platform.system()} {platform.machine()}"


def made_on(notebook):
    """The platform on which a twin's outputs were computed; None if the twin does not say."""
    return notebook.metadata.get("drocox", {}).get("platform")


def cache_key(root=ROOT):
    """Hash of everything that decides the outputs, except the cells themselves."""
    digest = hashlib.sha256()
    for folder in INPUTS:
        for file in sorted((root / folder).rglob("*")):
            name = file.relative_to(root).as_posix()
            if not file.is_file() or file.suffix in {".pyc", ".nbc", ".nbi"}:
                continue
            if name.startswith(UNFINISHED) or file.name == ".lock":
                continue
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            digest.update(f"{name} {content}\n".encode())
    digest.update(f"python {platform.python_version()} on {here()}\n".encode())
    for name in PACKAGES:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            version = "absent"
        digest.update(f"{name} {version}\n".encode())
    digest.update(repr(sorted(KERNEL_ENVIRONMENT.items())).encode())
    return digest.hexdigest()[:16]


def cache_path(root=ROOT):
    """The folder of the execution cache that holds today's outputs."""
    return root / "_build" / ".jupyter_cache" / cache_key(root)


def twins_path(root=ROOT):
    """The folder of a cache with the outputs of the twins, named after their content."""
    digest = hashlib.sha256(cache_key(root).encode())
    for twin in sorted((root / "book").rglob("*.ipynb")):
        digest.update(twin.read_bytes())
    return root / "_build" / ".jupyter_cache" / f"twins-{digest.hexdigest()[:16]}"
