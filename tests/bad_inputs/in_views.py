"""What cannot be drawn, shown, plotted or saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import saltus as sl
from tests.bad_inputs.case import MODEL, NQ, Case, Q, V

WALK, TIMES = np.tile(Q, (4, 1)), np.arange(4.0)
ELSEWHERE = "/nowhere/at/all/x.html"


def drawn(*arguments: Any, **settings: Any) -> Callable[[], Any]:
    return lambda: sl.view.save_replay(ELSEWHERE, MODEL, *arguments, **settings)


IN_VIEWS = {
    "q of another size": Case(
        drawn(Q[1:]), rf"q has shape \({NQ - 1},\), expected \({NQ},\), \(T, {NQ}\) or \(B, T, {NQ}\)"
    ),
    "q of four axes": Case(drawn(np.zeros((1, 1, 1, NQ))), r"q has shape \(1, 1, 1, .*\), expected"),
    "no frames": Case(drawn(np.zeros((0, NQ))), r"q has shape \(0, .*\), expected"),
    "complex": Case(drawn(Q + 0j), "q is not an array of numbers, but of complex128", TypeError),
    "text": Case(drawn("standing"), "q is not an array of numbers, but of <U8", TypeError),
    "NaN": Case(drawn(Q * np.nan), r"q\[0, 0, 0\] is nan, expected finite numbers"),
    "quaternion": Case(drawn(2.0 * Q), r"q\[0, 0\]: the cosine and sine of joint .* has norm 2, expected 1"),
    "no time": Case(drawn(Q, 0.0), "dt is 0.0, expected a positive time in seconds"),
    "backwards": Case(drawn(Q, -0.1), "dt is -0.1, expected a positive time in seconds"),
    "NaN time": Case(drawn(Q, np.nan), "dt is nan, expected a positive time in seconds"),
    "time as text": Case(drawn(Q, "slow"), "dt is not an array of numbers, but of <U4", TypeError),
    "several times": Case(drawn(Q, [0.1, 0.2]), r"dt is \[0.1, 0.2\], expected a positive time in seconds"),
    "layout": Case(drawn(Q, layout="row"), "layout is 'row', expected one of 'grid', 'overlay'"),
    "unknown contact": Case(
        drawn(Q, contacts=["fram_1"]), "has no frame 'fram_1'; did you mean 'frame_1'", sl.ModelError
    ),
    "contacts as text": Case(
        drawn(Q, contacts="frame_1"), "contacts is 'frame_1', expected a list of the names", TypeError
    ),
    "number of contacts": Case(
        drawn(Q, contacts=5), "contacts is 5, expected a list of the names or indices", TypeError
    ),
    "forces without contacts": Case(
        drawn(Q, forces=np.ones((1, 3))), "there are forces but no contacts: expected the names"
    ),
    "forces of another shape": Case(
        drawn(Q, contacts=["frame_1"], forces=np.ones((2, 3))), r"forces has shape \(2, 3\), expected \(1, 1, 1, 3\)"
    ),
    "NaN force": Case(drawn(Q, contacts=["frame_1"], forces=[[np.nan] * 3]), "forces contains NaN or an infinity"),
    "negative friction": Case(drawn(Q, contacts=["frame_1"], friction=-1), "friction is -1, expected nothing negative"),
    "normal of length 0": Case(
        drawn(Q, contacts=["frame_1"], normals=(0, 0, 0)), "normals contains one of length 0, expected dir"
    ),
    "unknown setting": Case(drawn(Q, colour="red"), "unexpected keyword argument 'colour'", TypeError),
    "folder that is not there": Case(drawn(Q), f"{ELSEWHERE}: cannot be written: No such file or directory"),
    "model as text": Case(lambda: sl.view.show("quadruped"), "the model is a str, expected a saltus.Model", TypeError),
    "port below 0": Case(lambda: sl.view.show(MODEL, port=-1), "port is -1, expected a number from 0 to 65535"),
    "port too high": Case(lambda: sl.view.show(MODEL, port=70000), "port is 70000, expected a number from 0 to 65535"),
    "port as text": Case(lambda: sl.view.show(MODEL, port="http"), "port is 'http', expected a number from 0 to 65535"),
    "host of others": Case(
        lambda: sl.view.show(MODEL, host="192.0.2.1"), "host is '192.0.2.1', expected an address of this mac"
    ),
    "host that is none": Case(
        lambda: sl.view.show(MODEL, host="no host"), "host is 'no host', expected an address of this mac"
    ),
    "shown shape": Case(lambda: sl.view.show(MODEL, Q[1:]), "q has shape .* expected"),
    "plot: times": Case(lambda: sl.view.plot_trajectory(MODEL, 5, WALK), r"t has shape \(\), expected \(T,\)"),
    "plot: NaN time": Case(
        lambda: sl.view.plot_trajectory(MODEL, TIMES * np.nan, WALK), "t contains NaN or an infinity"
    ),
    "plot: nothing": Case(lambda: sl.view.plot_trajectory(MODEL, TIMES), "nothing to plot: expected q, v or tau"),
    "plot: joints as text": Case(
        lambda: sl.view.plot_trajectory(MODEL, TIMES, WALK, joints="knee"),
        "joints is 'knee', expected a list",
        TypeError,
    ),
    "plot: energy": Case(
        lambda: sl.view.plot_energy(MODEL, TIMES, Q, V), rf"q has shape \({NQ},\), expected \(4, {NQ}\)"
    ),
    "plot: centre of mass": Case(
        lambda: sl.view.plot_center_of_mass(MODEL, TIMES, WALK[1:]), r"q has shape \(3, .* expected \(4, "
    ),
    "plot: forces": Case(
        lambda: sl.view.plot_contact_forces(TIMES, np.ones((3, 1, 3)), 0.5), r"forces has shape \(3, 1, 3\), exp"
    ),
    "plot: friction": Case(
        lambda: sl.view.plot_contact_forces(TIMES, np.ones((4, 1, 3)), -1), "friction is -1, expected one coef"
    ),
    "plot: normal": Case(
        lambda: sl.view.plot_contact_forces(TIMES, np.ones((4, 1, 3)), 1.0, normal=(0, 0, 0)),
        "normal is .* expected a direction",
    ),
    "saved: no model": Case(
        lambda: sl.save_urdf("arm", "x.urdf"), "save_urdf: the model is a str, expected", TypeError
    ),
    "saved: spherical": Case(
        lambda: sl.save_urdf(MODEL, "x.urdf"), "is SPHERICAL, which URDF does not have", sl.ModelError
    ),
    "saved: no folder": Case(
        lambda: sl.save_urdf(sl.random_model(0, 1, ["revolute"]), ELSEWHERE),
        "cannot be written: No such file",
        sl.ModelError,
    ),
}
