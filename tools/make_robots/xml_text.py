"""What the files have in common: numbers that are the same on every machine, and an XML document."""

from __future__ import annotations

from xml.etree.ElementTree import Element, indent, tostring

NOTE = "Made by `python -m tools.make_robots`; change it there."


def numbers(*values: float) -> str:
    """Ten digits: more than matter, and too few for the rounding of different machines to show."""
    return " ".join(f"{round(value, 14) + 0.0:.10g}" for value in values)


def pose_numbers(*values: float) -> str:
    """Twelve decimals: loops close to 1e-11."""
    return " ".join(f"{round(value, 12) + 0.0:.12g}" for value in values)


def document(root: Element) -> str:
    indent(root)
    return f"<!-- {NOTE} -->\n{tostring(root, encoding='unicode')}\n"
