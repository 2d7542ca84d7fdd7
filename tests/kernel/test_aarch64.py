"""Code for ARM processors, run by an emulator where there is one: `apt install qemu-user gcc-aarch64-linux-gnu`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from saltus.kernel import ALGORITHMS, F64, Algorithm, Number
from saltus.kernel.launch import make_plan
from tests.kernel.cases import all_kinds, random_inputs, run
from tests.kernel.processes import fresh

EMULATOR, COMPILER = shutil.which("qemu-aarch64"), shutil.which("aarch64-linux-gnu-gcc")
SAMPLES = 7

EMIT = """
from pathlib import Path
import saltus
from saltus.kernel import ALGORITHMS, Number, target
target.force("aarch64")
from saltus.kernel.compile import emit
algorithm = next(each for each in ALGORITHMS if each.name == {name!r})
Path({file!r}).write_bytes(emit(algorithm, {number!r}, algorithm.present({given}), {form!r}, "run"))
"""

MAIN = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int64_t run(int64_t*, int64_t*, int64_t*, void*, int64_t, int64_t);

static void* content(const char* name, long* size) {
    FILE* file = fopen(name, "rb");
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    void* memory = aligned_alloc(64, (*size + 127) / 64 * 64);
    if (fread(memory, 1, *size, file) != (size_t)*size) exit(2);
    fclose(file);
    return memory;
}

int main(int count, char** names) {
    /* arrays handle meta sizes words samples arguments ...; each argument is written back */
    long size, sizes[64];
    char* arrays = content(names[1], &size);
    int64_t *handle = content(names[2], &size), pointers[64];
    for (int k = atol(names[4]); k < size / 8; k++) handle[k] += (int64_t)arrays;
    int64_t* meta = content(names[3], &size);
    void* work = aligned_alloc(64, (atol(names[5]) * 8 + 127) / 64 * 64);
    for (int k = 7; k < count; k++) pointers[k - 7] = (int64_t)content(names[k], &sizes[k]);
    int64_t status = run(handle, pointers, meta, work, 0, atol(names[6]));
    for (int k = 7; k < count; k++) {
        FILE* file = fopen(names[k], "wb");
        fwrite((void*)pointers[k - 7], 1, sizes[k], file);
        fclose(file);
    }
    return (int)status;
}
"""


@pytest.mark.slow
@pytest.mark.skipif(not (EMULATOR and COMPILER), reason="needs qemu-user and gcc-aarch64-linux-gnu")
@pytest.mark.parametrize("name", ["aba", "crba", "rnea_derivatives", "integrate"])
@pytest.mark.parametrize(("number", "form"), [(F64, "one"), (Number(64, 2), "many"), (Number(32, 4), "many")], ids=str)
def test_same_as_here(tmp_path: Path, name: str, number: Number, form: str) -> None:
    algorithm: Algorithm = next(each for each in ALGORITHMS if each.name == name)
    model, given = all_kinds(), algorithm.variants()[0]
    leading = () if form == "one" else (SAMPLES,)
    dtype = np.dtype(f"f{number.bits // 8}")
    inputs = [np.asarray(x, dtype) for x in random_inputs(algorithm, given, model, 3, leading)]
    expected = run(algorithm, model, inputs)

    fresh(EMIT.format(name=name, number=number, form=form, given=given, file=str(tmp_path / "code.o")))
    (tmp_path / "main.c").write_text(MAIN)
    command = [
        COMPILER,
        "-static",
        "-O1",
        "-Wl,--unresolved-symbols=ignore-all",
        "main.c",
        "code.o",
        "-o",
        "main",
        "-lm",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    plan, filled = make_plan(algorithm, model, inputs), algorithm.filled(model)
    absent = [np.zeros(0)] * (len(algorithm.inputs) - given)
    sizes = [filled.sizes[size] for size in algorithm.tables.sizes]
    content, starts = b"", list[int]()
    for part in filled.parts:
        ints, reals = part.arrays(number.bits)
        starts += [len(content) + part.reals.nbytes, len(content)]
        content += reals.tobytes().ljust(part.reals.nbytes, b"0") + ints.tobytes()
        content = content.ljust(-(-len(content) // 64) * 64, b"0")
    places = filled.addresses(starts, 64) + filled.addresses(starts, 32)
    tables = np.frombuffer(content, "u1")
    arrays = {"arrays": tables, "handle": np.array(sizes + places), "meta": plan.meta}
    values = [*inputs, *absent, *(np.zeros(output.shape, dtype) for output in expected)]
    files = [f"argument{k}" for k in range(len(values))]
    for file, array in [*arrays.items(), *zip(files, values, strict=True)]:
        (tmp_path / file).write_bytes(np.ascontiguousarray(array).tobytes())
    words = str(16 * (plan.words + plan.work))
    command = [EMULATOR, "main", *arrays, str(len(sizes)), words, str(SAMPLES), *files]
    subprocess.run(command, cwd=tmp_path, check=True)
    for k, output in enumerate(expected, len(algorithm.inputs)):
        found = np.frombuffer((tmp_path / files[k]).read_bytes(), dtype).reshape(output.shape)
        assert np.abs(found - output).max() <= 1e4 * np.finfo(dtype).eps * np.abs(output).max()
