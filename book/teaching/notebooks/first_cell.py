# Installs drocox where it is missing: from a wheel in this folder or above, else from the network.
import glob
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("drocox") is None:
    wheels = glob.glob("drocox-*.whl") + glob.glob("../../drocox-*.whl")
    package = wheels[0] if wheels else "drocox @ git+https://github.com/drocox/drocox"
    command = [sys.executable, "-m", "pip", "install", *"$options".split(), package]
    subprocess.run(command, capture_output=True)
    importlib.invalidate_caches()


class Missing(Exception):
    """Shown as one sentence, without a traceback."""

    def _render_traceback_(self):
        return [str(self)]


if importlib.util.find_spec("drocox") is None:
    raise Missing(
        "drocox could not be installed: download notebooks.zip from the page of the course, "
        "unpack it, and open this notebook in the folder where it then lies."
    )
