"""The packages of the library import in one direction, and the folders of tests mirror them."""

from pathlib import Path

import pytest
from importlinter.api import read_configuration
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parents[1]
PROJECT = str(ROOT / "pyproject.toml")
CONTRACTS = read_configuration(PROJECT)["contracts_options"]


@pytest.mark.parametrize("contract", [contract["id"] for contract in CONTRACTS])
def test_import_contract_holds(contract, capfd):
    failed = lint_imports(PROJECT, limit_to_contracts=(contract,), no_cache=True)
    assert not failed, capfd.readouterr().out


def test_every_folder_of_tests_is_named_like_a_package():
    def folders(path: Path) -> set[str]:
        return {folder.name for folder in path.iterdir() if any(folder.glob("**/*.py"))}

    assert folders(ROOT / "tests") <= folders(ROOT / "src" / "legnn") | {"benchmarks", "campaign", "docs"}
