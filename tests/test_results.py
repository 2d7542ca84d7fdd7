"""Results of benchmarks lie as `benchmarks.measure.write` leaves them: a row a line, so that changes can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.measure import RESULTS, lines_of


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.json")), ids=lambda file: file.stem)
def test_a_row_is_a_line(file: Path) -> None:
    text = file.read_text()
    result = json.loads(text)
    assert lines_of(result) == text, f"{file.name} is not as benchmarks.measure.lines_of writes it"
    rows = result.get("rows", [])
    assert text.count("\n") > len(rows)


def test_lines_can_be_read_again() -> None:
    result = {
        "command": "x",
        "rows": [{"a": 1.5, "b": [1, 2]}, {"a": 2.5, "b": []}],
        "best": {"k": {"c": 1}},
        "none": {},
    }
    text = lines_of(result)
    assert json.loads(text) == result
    assert '{"a": 1.5, "b": [1, 2]},\n' in text and '"k": {"c": 1}\n' in text
