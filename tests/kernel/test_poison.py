"""`SALTUS_POISON`: kernels that leave results unwritten, or read memory that nobody wrote, show in every way to call."""

from __future__ import annotations

from tests.kernel.processes import fresh

CODE = "import runpy; runpy.run_module('tests.kernel.careless', run_name='__main__')"


def test_what_is_left_unwritten_is_nan() -> None:
    assert fresh(CODE, SALTUS_POISON="1").split() == ["True"] * 27


def test_it_is_off_by_default() -> None:
    """Results given as zeros keep theirs: what the test above sees is due to the variable."""
    found = fresh(CODE, SALTUS_POISON="").split()
    assert len(found) == 27 and "False" in found
