"""`Algorithm.call` as a builtin: from a public function to compiled code without a frame of the interpreter's on the way,
which costs as much as the kinematics of an arm.

It looks up, in `model.quick`, the builtin that the model keeps for the algorithm and for so many inputs (fastcall.py), and
calls its function. What it has found it notes in a table of its own, which is emptied when a model gets another builtin or
is no more. All else it leaves to the method in whose place it is: other arguments, models without such a builtin, what that
answers by an integer.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from typing import Any

import numpy as np

from saltus.kernel import fastcall, native

BITS = 8
NOTES = np.zeros((2**BITS, 5), np.int64)
"""By a hash of the first two: model, algorithm, number of inputs, function of the builtin and what that is handed over."""

CODE = """
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyCFunction_GetFunction(ptr)
declare ptr @PyCFunction_GetSelf(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @PyErr_Clear()
declare void @Py_DecRef(ptr)

define ptr @"saltus.front"(ptr %algorithm, ptr %arguments, i64 %count, ptr %names) {{
  %four = icmp eq i64 %count, 4
  %unnamed = icmp eq ptr %names, null
  %fits = and i1 %four, %unnamed
  br i1 %fits, label %check, label %long
check:
  %second = getelementptr ptr, ptr %arguments, i64 1
  %inputs = load ptr, ptr %second
  %inputs.type = getelementptr i8, ptr %inputs, i64 {type}
  %class = load ptr, ptr %inputs.type
  %tuple = icmp eq ptr %class, inttoptr (i64 {tuple} to ptr)
  %fourth = getelementptr ptr, ptr %arguments, i64 3
  %on_invalid = load ptr, ptr %fourth
  %raises = icmp eq ptr %on_invalid, inttoptr (i64 {raises} to ptr)
  %usual = and i1 %tuple, %raises
  br i1 %usual, label %look, label %long
look:
  %model = load ptr, ptr %arguments
  %inputs.length = getelementptr i8, ptr %inputs, i64 {length}
  %given = load i64, ptr %inputs.length
  %m = ptrtoint ptr %model to i64
  %a = ptrtoint ptr %algorithm to i64
  %mixed = xor i64 %m, %a
  %hash = mul i64 %mixed, -7046029254386353131
  %row = lshr i64 %hash, {shift}
  %note = getelementptr [5 x i64], ptr inttoptr (i64 {notes} to ptr), i64 %row
  %note.algorithm = getelementptr i64, ptr %note, i64 1
  %note.given = getelementptr i64, ptr %note, i64 2
  %note.way = getelementptr i64, ptr %note, i64 3
  %note.own = getelementptr i64, ptr %note, i64 4
  %m.noted = load i64, ptr %note
  %a.noted = load i64, ptr %note.algorithm
  %given.noted = load i64, ptr %note.given
  %way.noted = load ptr, ptr %note.way
  %own.noted = load ptr, ptr %note.own
  %same.m = icmp eq i64 %m, %m.noted
  %same.a = icmp eq i64 %a, %a.noted
  %same.given = icmp eq i64 %given, %given.noted
  %same.call = and i1 %same.m, %same.a
  %same = and i1 %same.call, %same.given
  br i1 %same, label %go, label %find
find:
  %quick = call ptr @PyObject_GetAttr(ptr %model, ptr inttoptr (i64 {quick} to ptr))
  %stranger = icmp eq ptr %quick, null
  br i1 %stranger, label %clear, label %choose
choose:
  %ways = call ptr @PyDict_GetItemWithError(ptr %quick, ptr %algorithm)
  call void @Py_DecRef(ptr %quick)
  %first = icmp eq ptr %ways, null
  br i1 %first, label %clear, label %pick
pick:
  %builtin = call ptr @PyTuple_GetItem(ptr %ways, i64 %given)
  %other = icmp eq ptr %builtin, null
  br i1 %other, label %clear, label %inspect
inspect:
  %builtin.type = getelementptr i8, ptr %builtin, i64 {type}
  %builtin.class = load ptr, ptr %builtin.type
  %made = icmp eq ptr %builtin.class, inttoptr (i64 {builtin} to ptr)
  br i1 %made, label %keep, label %long
keep:
  %way.found = call ptr @PyCFunction_GetFunction(ptr %builtin)
  %own.found = call ptr @PyCFunction_GetSelf(ptr %builtin)
  store i64 %m, ptr %note
  store i64 %a, ptr %note.algorithm
  store i64 %given, ptr %note.given
  store ptr %way.found, ptr %note.way
  store ptr %own.found, ptr %note.own
  br label %go
go:
  %way = phi ptr [%way.noted, %look], [%way.found, %keep]
  %own = phi ptr [%own.noted, %look], [%own.found, %keep]
  %answer = call ptr %way(ptr %own, ptr %second, i64 2)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %done, label %judge
judge:
  %answer.type = getelementptr i8, ptr %answer, i64 {type}
  %kind = load ptr, ptr %answer.type
  %declined = icmp eq ptr %kind, inttoptr (i64 {integer} to ptr)
  br i1 %declined, label %drop, label %done
done:
  ret ptr %answer
drop:
  call void @Py_DecRef(ptr %answer)
  br label %long
clear:
  call void @PyErr_Clear()
  br label %long
long:
  %method = call ptr @PyObject_GetAttr(ptr %algorithm, ptr inttoptr (i64 {method} to ptr))
  %result = call ptr @PyObject_Vectorcall(ptr %method, ptr %arguments, i64 %count, ptr %names)
  call void @Py_DecRef(ptr %method)
  ret ptr %result
}}
"""

NAMES = tuple(map(sys.intern, ("quick", "long_call", "raise")))
"""Kept here, for the code knows where they are."""


def install(cls: Any) -> None:
    """Put the builtin in the place of `cls.call`, which is also `cls.long_call`."""
    if cls.call is cls.long_call:
        quick, method, raises = map(id, NAMES)
        code = CODE.format(
            quick=quick, method=method, raises=raises, integer=id(int), tuple=id(tuple), builtin=id(type(len)),
            notes=NOTES.ctypes.data, shift=64 - BITS, type=fastcall.TYPE, length=fastcall.LENGTH,
        )  # fmt: skip
        new = ctypes.pythonapi.PyDescr_NewMethod
        new.restype, new.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
        flags = fastcall.METH_FASTCALL | fastcall.METH_KEYWORDS
        cls.call = new(cls, ctypes.addressof(fastcall.method(native.link(code, "saltus.front"), "call", flags)))


def note_anew(model: Any) -> None:
    """Forget what was noted: now, for the model has another builtin; and when it is no more, for another model may come to
    lie in its place."""
    NOTES.fill(0)
    weakref.finalize(model, NOTES.fill, 0).atexit = False
