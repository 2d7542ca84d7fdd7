"""What the kernel language has, and what of Python it has not, in words: for errors."""

from __future__ import annotations

import ast


def described(node: ast.AST) -> str:
    return NAMES.get(type(node), type(node).__name__)


NAMES: dict[type, str] = {
    ast.ListComp: "list comprehension",
    ast.List: "list",
    ast.Dict: "dictionary",
    ast.Lambda: "lambda",
    ast.Try: "try",
    ast.TryStar: "try",
    ast.With: "with",
    ast.Raise: "raise",
    ast.Assert: "assert",
    ast.FunctionDef: "function within a function",
    ast.ClassDef: "class",
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Delete: "del",
    ast.JoinedStr: "formatted string",
    ast.Slice: "slice",
    ast.Starred: "star",
    ast.Attribute: "attribute",
    ast.Pow: "power **",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Await: "await",
    ast.NamedExpr: "assignment within an expression",
    ast.Set: "set",
    ast.GeneratorExp: "generator",
    ast.DictComp: "dictionary comprehension",
    ast.SetComp: "set comprehension",
    ast.AnnAssign: "annotated assignment",
    ast.Match: "match",
    ast.In: "operator in",
    ast.NotIn: "operator not in",
    ast.UAdd: "sign +",
    ast.Invert: "operator ~",
    ast.LShift: "operator <<",
    ast.RShift: "operator >>",
    ast.BitXor: "operator ^",
    ast.Add: "sum",
    ast.Sub: "difference",
    ast.Mult: "product",
    ast.Div: "quotient",
    ast.MatMult: "matrix product",
    ast.Mod: "remainder",
    ast.FloorDiv: "whole quotient",
    ast.BitOr: "operator |",
    ast.BitAnd: "operator &",
}
"""What the language has not, and what it has, in words."""
