"""What a command imports, and that it says something before it imports PyTorch."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import legnn
from legnn.cli.loading import WORDS

SOURCE = str(Path(legnn.__file__).resolve().parents[1])
UNNEEDED = "torch_geometric sklearn matplotlib"
COMMANDS = """
import sys
from legnn.cli import main

def command(*words):
    sys.argv = ["legnn", *words]
    try:
        main()
    except SystemExit as stop:
        return stop.code or 0
    return 0

def unneeded(words):
    return [name for name in words.split() if name in sys.modules]
"""


def in_new_process(code: str, cwd: Path, **streams) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": SOURCE, "OMP_NUM_THREADS": "1", "RANK": "0"}
    return subprocess.run([sys.executable, "-c", COMMANDS + code], cwd=cwd, env=environment, timeout=120, **streams)


def test_training_and_predicting_import_neither_pyg_nor_scikit_learn_and_training_no_pandas(tmp_path):
    code = (
        "assert command('train', 'digits', '--preset', 'simple', '--epochs', '1', '--out', 'run') == 0\n"
        f"assert not unneeded({UNNEEDED!r} + ' pandas'), unneeded({UNNEEDED!r} + ' pandas')\n"
    )
    done = in_new_process(code, tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # PyTorch's Adam imports PyTorch's compiler, and nothing else may
    unneeded = f"{UNNEEDED} torch._dynamo sympy"
    code = f"assert command('predict', 'run') == 0\nassert not unneeded({unneeded!r}), unneeded({unneeded!r})\n"
    done = in_new_process(code, tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_unknown_option_is_refused_without_pytorch(tmp_path):
    code = "assert command('train', 'digits', '--nope') == 2\nassert not unneeded('torch numba pandas')\n"
    done = in_new_process(code, tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_command_in_a_terminal_says_that_it_loads_before_pytorch_is_imported(tmp_path):
    # the first import of PyTorch ends the process: all that was printed before it came before
    code = (
        "class Stop:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'torch':\n"
        "            raise SystemExit(7)\n"
        "sys.meta_path.insert(0, Stop())\n"
        "sys.exit(command('train', 'digits', '--out', 'run'))\n"
    )
    terminal, child = pty.openpty()
    done = in_new_process(code, tmp_path, stdout=subprocess.DEVNULL, stderr=child)
    os.close(child)
    shown = os.read(terminal, 1 << 16).decode()
    os.close(terminal)
    assert done.returncode == 7
    assert shown.startswith(WORDS)
