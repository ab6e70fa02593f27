"""pypi.py - a package of PyPI, in a virtual environment of its own below the build folder."""
# SPDX-License-Identifier: MIT
import os
import subprocess
import venv


def install_package(folder, requirement):
    """Once for each folder. Returns why it cannot be had, or None."""
    mark = os.path.join(folder, "installed")
    if os.path.exists(mark):
        return None
    try:
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([os.path.join(folder, "bin", "pip"), "install", "--quiet", requirement], check=True, timeout=600)
        with open(mark, "w", encoding="utf-8") as file:
            file.write(requirement + "\n")
    except (OSError, subprocess.SubprocessError) as err:
        return f"{requirement} cannot be installed from PyPI into {folder}: {err}"
    return None
