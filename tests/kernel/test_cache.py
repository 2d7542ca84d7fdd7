"""Compiled code is kept under a key that changes with all it depends on."""

from __future__ import annotations

from dataclasses import replace

from saltus.kernel import ALGORITHMS, F64, Layout, Tables, declare
from saltus.kernel.native import _key
from saltus.model.tree import CONFIGURATIONS, INTS, REALS, SIZES, TABLES, TREE


def test_key_depends_on_where_things_are() -> None:
    """A kernel compiled for another layout of the tables, or of its workspace, would read and write anywhere."""

    def kernel(tree, q, w, y):
        y[0] = tree.gravity[0].x

    known_before = len(ALGORITHMS)
    settings = {"inputs": {"q": "nq"}, "outputs": {"y": "1"}}
    others = (
        replace(TREE, sizes=SIZES[::-1]),
        replace(TREE, ints=INTS.extended(one={"more": None})),
        replace(TREE, reals=REALS.extended(nj={"more": None})),
    )
    made = [
        declare(TABLES, **settings)(kernel),
        *(declare(Tables([other], CONFIGURATIONS), **settings)(kernel) for other in others),
        declare(TABLES, work=Layout(nj={"more": None}), **settings)(kernel),
        declare(TABLES, inputs={"q": "nq"}, outputs={"y": "2"})(kernel),
    ]
    del ALGORITHMS[known_before:]  # they are no part of the package
    keys = {_key(algorithm, F64, algorithm.present(1), "one") for algorithm in made}
    assert len(keys) == len(made)
    assert _key(made[0], F64, (True, True), "one") == _key(made[0], F64, (True, True), "one")
