"""Kernels that nbval starts get the environment that the book's build gives them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from cache_key import prepare_kernels  # noqa: E402

prepare_kernels()
