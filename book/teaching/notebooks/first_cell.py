# Installs what is missing: drocox from a wheel in this folder or above, else from the network.
import glob
import importlib.util
import subprocess
import sys

needed = "$needed".split()
wheels = glob.glob("drocox-*.whl") + glob.glob("../../drocox-*.whl")
package = wheels[0] + "$extra" if wheels else "drocox$extra @ git+https://github.com/drocox/drocox"


def missing():
    importlib.invalidate_caches()
    found = {name: importlib.util.find_spec(name) for name in needed}
    return [
        name for name in needed if not (found[name] and found[name].origin)
    ]  # not a mere folder


if missing():
    command = [sys.executable, "-m", "pip", "install", *"$options".split(), package]
    subprocess.run(command, capture_output=True)

if not missing():
    advice = ""
elif wheels:
    names = [package if name == "drocox" else name for name in missing()]
    what = " ".join(names) if "$options" else f'"{package}"'
    advice = f"Packages are missing. With a network, run once:   pip install {what}"
else:
    advice = (
        "drocox could not be installed: download notebooks.zip from the page of the course, "
        "unpack it, and open this notebook in the folder where it then lies."
    )


def advise(*_, **__):
    """Say it below each cell that is run all the same, instead of its own error."""
    print(advice)


get_ipython().set_custom_exc((Exception,) if advice else (), advise)  # noqa: F821
if advice:
    raise ImportError(advice)
