"""Tests of the audit use the literal transcriptions beside the library's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
