"""Modules that are imported when they are used."""

import gc
import pickle
import subprocess
import sys
from fractions import Fraction
from functools import partial

import pytest

from legnn.lazy import call_pickled, importing, is_a, lazy_module

UNUSED = "xmlrpc.client"
"""A module of Python's own that nothing here imports."""


@pytest.fixture
def not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, UNUSED, raising=False)
    return UNUSED


def test_a_lazy_module_is_imported_by_the_first_use_of_a_name(not_imported):
    module = lazy_module(not_imported)
    assert not_imported not in sys.modules
    assert module.MAXINT == 2**31 - 1
    assert not_imported in sys.modules


def test_a_name_that_a_lazy_module_does_not_have_is_an_attribute_error(not_imported):
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = lazy_module(not_imported).no_such_name


def test_nothing_is_an_instance_of_a_class_that_nobody_imported(not_imported):
    assert not is_a("text", not_imported, "ServerProxy")
    assert not_imported not in sys.modules


def test_an_instance_of_any_of_the_classes_is_one():
    assert is_a(Fraction(1, 2), "fractions", "Decimal", "Fraction")
    assert not is_a(0.5, "fractions", "Fraction")


def test_garbage_is_collected_again_after_imports_and_not_during_them(monkeypatch):
    monkeypatch.setattr("legnn.lazy.gc.freeze", lambda: None)
    assert gc.isenabled()
    with importing():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_pickled_function_is_called_with_what_is_given(monkeypatch):
    monkeypatch.setattr("legnn.lazy.gc.freeze", lambda: None)
    assert call_pickled(pickle.dumps(partial(divmod, 7)), 2) == (3, 1)


def test_a_process_that_imports_triton_ends_without_a_word():
    code = "from legnn.lazy import importing\nwith importing():\n    import torch, triton, torch_geometric.nn\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
