"""The public names, and that asking for help costs no PyTorch."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import legnn

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", legnn.__all__)
def test_every_public_name_can_be_imported_and_is_documented(name):
    assert getattr(legnn, name).__doc__


def test_there_are_few_public_names_and_nothing_else_is_shown():
    assert len(legnn.__all__) <= 28
    assert set(dir(legnn)) == {*legnn.__all__, "__version__"}


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = legnn.trian


def test_the_version_is_that_of_the_project():
    with open(ROOT / "pyproject.toml", "rb") as file:
        assert legnn.__version__ == tomllib.load(file)["project"]["version"]


def test_neither_the_package_nor_its_settings_nor_its_help_imports_pytorch():
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "import legnn\n"
        "from legnn.cli import make_app\n"
        "import legnn.config\n"
        "commands = 'train auto predict evaluate report labels data reproduce settings'.split()\n"
        "for command in ([], *([name] for name in commands)):\n"
        "    assert CliRunner().invoke(make_app(), [*command, '--help']).exit_code == 0\n"
        "heavy = {'torch', 'torch_geometric', 'pandas', 'numba', 'sklearn', 'matplotlib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


PRINT_POLICY = "print([os.environ.get(name) for name in ('OMP_WAIT_POLICY', 'GOMP_SPINCOUNT')])"


def environment_after(code: str, **given: str) -> str:
    """What a new process has of the variables of OpenMP after `code`."""
    clean = {name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")}
    done = subprocess.run(
        [sys.executable, "-c", f"import os, sys\n{code}\n{PRINT_POLICY}"],
        env={**clean, **given}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()[-1]


def test_importing_the_package_leaves_the_environment_unchanged():
    code = "before = dict(os.environ)\nimport legnn\nlegnn.train\nassert dict(os.environ) == before"
    assert environment_after(code) == "[None, None]"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "[None, '20000']"),
        ({"OMP_WAIT_POLICY": "active"}, "['active', None]"),
        ({"GOMP_SPINCOUNT": "100"}, "[None, '100']"),
    ],
)
def test_the_command_limits_how_long_threads_wait_actively_unless_the_user_has_chosen(given, expected):
    code = (
        "from legnn.cli import main\nsys.argv = ['legnn', '--version']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nassert 'torch' not in sys.modules"
    )
    assert environment_after(code, **given) == expected
