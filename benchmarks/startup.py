"""What a user waits for in a process whose cache of compiled code is filled: the import, and the first call of a function.

    python -m benchmarks.startup [--robot solo12] [--algorithms aba,rnea] [--repeats 3] [--quick] [--output FILE]

Every figure comes from a process of its own: one robot, one call (`one`), or a batch in double or single precision. The
first process fills the cache and is not counted; the best of the others is.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

FORMS = ("one", "f64", "f32")
LIMIT = 0.5  # s


def child(algorithm: str, file: Path) -> None:
    """In the new process: time the import and the first call, print both."""
    start = perf_counter()
    import numpy  # noqa: F401  (its share of the import)

    middle = perf_counter()
    import saltus  # noqa: F401

    imported = perf_counter()
    from benchmarks.algorithms import ALGORITHMS

    model, inputs = pickle.loads(file.read_bytes())
    ready = perf_counter()
    ALGORITHMS[algorithm].call(model, *inputs)
    times = {"call": perf_counter() - ready, "numpy": middle - start, "saltus": imported - middle}
    print(json.dumps(times | {"compiler": "saltus.kernel.walk" in sys.modules}))


def new_process(algorithm: str, file: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.startup", "--child", algorithm, str(file)]
    times: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return times


def measure(algorithm: str, model: Any, repeats: int, folder: Path) -> dict[str, Any]:
    """The first call's time [s] in each form, and the import's."""
    import numpy as np

    from benchmarks.algorithms import ALGORITHMS, first, make_inputs

    row = ALGORITHMS[algorithm]
    inputs = make_inputs(model, row.batch, row.inputs)
    forms = {"one": first(inputs), "f64": inputs, "f32": first(inputs, row.batch, np.float32)}
    result: dict[str, Any] = {"algorithm": algorithm, "first_call_s": {}, "import_s": {}}
    for form, given in forms.items():
        file = folder / f"{algorithm}-{form}.pkl"
        file.write_bytes(pickle.dumps((model, row.choose(given))))
        new_process(algorithm, file)
        runs = [new_process(algorithm, file) for _ in range(repeats)]
        result["first_call_s"][form] = min(run["call"] for run in runs)
        imports = {part: min(run[part] for run in runs) for part in ("numpy", "saltus")}
        result["import_s"] = {part: min(t, result["import_s"].get(part, t)) for part, t in imports.items()}
        if any(run["compiler"] for run in runs):
            print(f"  {algorithm}, {form}: the compiler was loaded")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="The import and the first call in a new process, with a filled cache.")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--robot", default="solo12")
    parser.add_argument("--algorithms", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="to see that it works: two algorithms, one repeat")
    parser.add_argument("--output", type=Path, help="file or folder")
    options = parser.parse_args()
    if options.child:
        child(options.child[0], Path(options.child[1]))
        return

    from benchmarks.algorithms import ALGORITHMS
    from benchmarks.measure import circumstances, write
    from benchmarks.robots import chosen, saltus_model

    if options.quick:
        options.algorithms, options.repeats = options.algorithms or "aba,integrate", 1
    model = saltus_model(options.robot)
    result = circumstances("benchmarks.startup") | {"robot": options.robot, "repeats": options.repeats, "rows": []}
    print(f"{'first call [s]':28}" + "".join(f"{form:>8}" for form in FORMS))
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen(options.algorithms, ALGORITHMS):
            row = measure(name, model, options.repeats, Path(folder))
            result["rows"].append(row)
            print(f"{name:28}" + "".join(f"{row['first_call_s'][form]:8.3f}" for form in FORMS), flush=True)
    result["import_s"] = {part: min(row["import_s"][part] for row in result["rows"]) for part in ("numpy", "saltus")}
    worst = max(time for row in result["rows"] for time in row["first_call_s"].values())
    spent = ", ".join(f"{part} {time:.3f} s" for part, time in result["import_s"].items())
    print(f"\nimport {spent}; the slowest first call {worst:.3f} s (at most {LIMIT} s wanted)")
    if options.output or not (options.quick or options.algorithms):
        write(result, options.output, f"startup-{result['machine']['name']}.json")


if __name__ == "__main__":
    main()
