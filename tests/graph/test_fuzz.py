"""Random calls of the low-level API give the right result, or an error that names the argument."""

import pytest
from benchmarks.fuzz import fuzz, report


@pytest.mark.slow
def test_no_call_crashes_and_none_returns_a_wrong_result():
    failures = fuzz(first=0, calls=500)
    assert not failures, "\n".join(report(failures))
