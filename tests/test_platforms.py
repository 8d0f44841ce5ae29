"""The library can be imported where modules of POSIX are missing, as on Windows."""

import subprocess
import sys

CODE = """
import importlib, pkgutil, sys
import filelock, matplotlib.pyplot, numba, optuna, pandas, pyarrow.parquet, rich.progress, sklearn.ensemble
import scipy.sparse, torch.distributed.run, torch_geometric.datasets, typer  # they may use these modules
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty"):
    sys.modules[name] = None
import legnn
for module in pkgutil.walk_packages(legnn.__path__, "legnn."):
    if not module.name.endswith(("__main__", ".gpu")):
        importlib.import_module(module.name)
"""


def test_every_module_is_imported_without_the_modules_of_posix():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
