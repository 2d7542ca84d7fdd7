"""The processor that native code is made for."""

from __future__ import annotations

import functools
from typing import Any

import llvmlite.binding as llvm

from saltus.kernel.number import Number


def target_machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        codemodel="jitdefault",
        jit=True,
    )


@functools.cache
def packet(bits: int) -> Number:
    """The packet that fills a vector register: 512 bits with AVX-512, 256 with AVX, else 128."""
    features = llvm.get_host_cpu_features()
    register = 512 if features.get("avx512f") else 256 if features.get("avx") else 128
    return Number(bits, register // bits)
