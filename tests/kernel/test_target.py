"""`SALTUS_TARGET`: narrower processors on a wider one."""

from __future__ import annotations

import pytest

from saltus.kernel.target import LEVELS, lacking
from tests.kernel.processes import fresh, run

ASK = """
from saltus.kernel import F64, native, target
from saltus.dynamics.crba import _crba
found = target.target()
print(found.cpu, target.packet(64).width, target.packet(32).width, native._key(_crba, F64, (True, True), "one"))
"""
WITHOUT = """
import llvmlite.binding as llvm
host = llvm.get_host_cpu_features()
llvm.get_host_cpu_features = lambda: type(host)({**host, "fma": False, "avx512f": False})
from saltus.kernel import target
try:
    target.target()
except ValueError as error:
    print(error)
"""
each_level = pytest.mark.parametrize("level", [level for level in LEVELS if not lacking(level)])


@each_level
def test_packets_fill_its_registers(level: str) -> None:
    cpu, double, single, _ = fresh(ASK, SALTUS_TARGET=level).split()
    register = {"x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}[level]
    assert (cpu, int(double), int(single)) == (level, register // 64, register // 32)


def test_each_has_its_own_code_in_the_cache() -> None:
    names = ["", "native", *(level for level in LEVELS if not lacking(level))]
    unset, native, *levels = [fresh(ASK, SALTUS_TARGET=name).split()[-1] for name in names]
    assert unset == levels[0]  # the widest that the machine has
    assert len({native, *levels}) == 1 + len(levels)


def test_a_name_that_nobody_knows() -> None:
    found = run(ASK, SALTUS_TARGET="x86-64-v9")
    assert (
        "SALTUS_TARGET is 'x86-64-v9', expected one of native, x86-64-v4, x86-64-v3, x86-64-v2, aarch64" in found.stderr
    )


def test_a_machine_that_cannot() -> None:
    words = "SALTUS_TARGET is 'x86-64-v4', but this machine lacks "
    found = fresh(WITHOUT, SALTUS_TARGET="x86-64-v4")
    assert found.startswith(words)
    assert {"fma", "avx512f"} <= set(found.removeprefix(words).strip().split(", "))
    assert fresh(WITHOUT, SALTUS_TARGET="x86-64-v2") == ("" if not lacking("x86-64-v2") else found)
