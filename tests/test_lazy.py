"""Modules that are imported when they are used."""

import sys
from fractions import Fraction

import pytest

from legnn.lazy import is_a, lazy_module

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
