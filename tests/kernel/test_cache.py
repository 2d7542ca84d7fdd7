"""Compiled code is kept under a key that changes with all it depends on."""

from __future__ import annotations

from saltus.kernel import ALGORITHMS, F64, Layout, declare
from saltus.kernel.native import _key
from saltus.model.tree import INTS, REALS, tables


def test_key_depends_on_where_things_are() -> None:
    """A kernel compiled for another layout of the tables, or of its workspace, would read and write anywhere."""

    def kernel(tree, q, w, y):
        y[0] = tree.gravity[0].x

    known_before = len(ALGORITHMS)
    settings = {"inputs": {"q": "nq"}, "outputs": {"y": "1"}}
    known = tables(INTS, REALS)
    made = [
        declare(known, **settings)(kernel),
        declare(tables(INTS.extended(one={"more": None}), REALS), **settings)(kernel),
        declare(tables(INTS, REALS.extended(nj={"more": None})), **settings)(kernel),
        declare(known, work=Layout(nj={"more": None}), **settings)(kernel),
        declare(known, inputs={"q": "nq"}, outputs={"y": "2"})(kernel),
    ]
    del ALGORITHMS[known_before:]  # they are no part of the package
    keys = {_key(algorithm, F64, algorithm.present(1), "one") for algorithm in made}
    assert len(keys) == len(made)
    assert _key(made[0], F64, (True, True), "one") == _key(made[0], F64, (True, True), "one")
