"""Files that describe no robot, and paths that lead to none."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import Any

import saltus as sl
from tests.bad_inputs.case import Case
from tests.model.robots import LIMIT, joint, link, robot

PAIR = robot(link("a"), link("b"), joint("j", "a", "b"))
SDF_LINKS = '<link name="a"/><link name="b"/>'
SDF_JOINT = '<joint name="j" type="{}"><parent>a</parent><child>b</child>{}</joint>'
AXIS = "<axis><xyz>0 0 1</xyz></axis>"


def sdf(inside: str) -> str:
    return f'<sdf version="1.9"><model name="m">{inside}</model></sdf>'


def sdf_pair(kind: str = "revolute", inside: str = AXIS) -> str:
    return sdf(SDF_LINKS + SDF_JOINT.format(kind, inside))


def mjcf(inside: str) -> str:
    return f"<mujoco><worldbody>{inside}</worldbody></mujoco>"


def entities(root: str, declared: str) -> str:
    return f"<!DOCTYPE {root} [{declared}]><{root}>&e;</{root}>"


LAUGHS = (
    '<!ENTITY l0 "ha">' + "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10)) + '<!ENTITY e "&l9;">'
)
SECRET = '<!ENTITY e SYSTEM "file:///etc/passwd">'
ROOTS = {"urdf": "robot", "sdf": "sdf", "xml": "mujoco"}
LOADERS = {"urdf": sl.load_urdf, "sdf": sl.load_sdf, "xml": sl.load_mjcf}
WHOLE = {"urdf": PAIR, "sdf": sdf_pair(), "xml": mjcf('<body name="b"><joint/><geom size="1"/></body>')}

EVERY_FORMAT: dict[str, tuple[Callable[[str], Any], str]] = {
    "empty": (lambda _: "", "is empty, expected an? (URDF|SDF|MJCF) file"),
    "blank": (lambda _: " \n ", "is empty, expected an? (URDF|SDF|MJCF) file"),
    "binary": (lambda _: bytes(range(256)), "not well-formed XML"),
    "compressed": (lambda ending: gzip.compress(WHOLE[ending].encode()), "not well-formed XML"),
    "truncated": (lambda ending: WHOLE[ending][:-5], "not well-formed XML: .*line 1"),
    "page of the web": (lambda _: "<!DOCTYPE html><html><body/></html>", "root element is <html>, expected <"),
    "billion laughs": (lambda ending: entities(ROOTS[ending], LAUGHS), "declares XML entities, which are refused"),
    "external entity": (lambda ending: entities(ROOTS[ending], SECRET), "declares XML entities, which are refused"),
    "unknown encoding": (lambda ending: f'<?xml version="1.0" encoding="x-y"?>{WHOLE[ending]}', "not well-formed XML"),
}

MESH = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
IN_FILES = {
    "urdf": {
        "no link": (robot(), "there is no link"),
        "two roots": (robot(link("a"), link("b")), "there are 2 root links, expected one: a, b"),
        "link without parent": (robot(link("a"), link("b"), link("c"), joint("j", "a", "b")), "2 root links.*: a, c"),
        "cycle": (
            robot(link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")),
            "form a cycle, or hang below one: a, b",
        ),
        "two parents": (
            robot(*map(link, "abc"), joint("j", "a", "c"), joint("k", "a", "b"), joint("l", "b", "c")),
            "link 'c' is the child of two joints, 'j' and 'l'; expected a tree",
        ),
        "link twice": (robot(link("a"), link("a")), "there are two links 'a'"),
        "joint twice": (
            robot(*map(link, "abc"), joint("j", "a", "b"), joint("j", "b", "c")),
            "there are two joints 'j'",
        ),
        "missing link": (robot(link("a"), joint("j", "a", "b")), "joint 'j': its child link 'b' does not exist"),
        "unnamed link": (robot("<link/>"), "line 1: <link> has no attribute 'name'"),
        "no type": (PAIR.replace('type="revolute"', ""), "line 1: <joint> has no attribute 'type'"),
        "unknown type": (
            PAIR.replace("revolute", "ball"),
            "joint 'j' has the unknown type 'ball', expected one of revolute",
        ),
        "no limit": (
            robot(link("a"), link("b"), joint("j", "a", "b", inside="")),
            "joint 'j' is revolute but has no <limit>",
        ),
        "limits crossed": (
            PAIR.replace('lower="-1"', 'lower="3"'),
            r"its lower limit \[3.0\] is above its upper limit \[2.0\]",
        ),
        "zero axis": (
            PAIR.replace(LIMIT, LIMIT + '<axis xyz="0 0 0"/>'),
            "axis of joint 'j' is .* expected a direction",
        ),
        "negative mass": (
            PAIR.replace('value="1.5"', 'value="-1"'),
            "body '.': its mass is -1.0, expected no negative number",
        ),
        "NaN mass": (
            PAIR.replace('value="1.5"', 'value="nan"'),
            "link 'a', line 1: <mass> has value='nan', expected a finite",
        ),
        "infinite inertia": (
            PAIR.replace('ixx="0.2"', 'ixx="inf"'),
            "<inertia> has ixx='inf', expected a finite number",
        ),
        "no inertia": (robot(link("a", '<inertial><mass value="1"/></inertial>')), "<inertial> has no <inertia>"),
        "decimal comma": (
            PAIR.replace("0.4 0.5 -0.6", "0,4 0,5 -0,6"),
            "xyz='0,4 0,5 -0,6', expected 3 finite numbers",
        ),
        "climbing mesh": (
            robot(link("a", MESH.format("../../x.stl"))),
            "link 'a': the path '../../x.stl' climbs out of .* inside",
        ),
        "mesh without a path": (robot(link("a", MESH.format(" "))), "<mesh> has no attribute 'filename'"),
        "macros of xacro": (
            '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="x"/></robot>',
            r"line 1: <xacro:include> is a macro of xacro, expected plain URDF: `xacro robot.urdf > expanded.urdf`",
        ),
    },
    "sdf": {
        "no model": ('<sdf version="1.9"/>', "it has 0 models, expected one"),
        "two models": ('<sdf version="1.9"><model name="a"/><model name="b"/></sdf>', "it has 2 models, expected one"),
        "version": ('<sdf version="x"><model name="m"/></sdf>', "has version='x', expected one as 1.6"),
        "no link": (sdf(""), "there is no link"),
        "two roots": (sdf(SDF_LINKS), "there are 2 roots, a, b; expected one link, or the world"),
        "cycle": (
            sdf_pair().replace(
                "</model>",
                SDF_JOINT.format("revolute", AXIS)
                .replace('"j"', '"k"')
                .replace("<parent>a", "<parent>b")
                .replace("<child>b", "<child>a")
                + "</model>",
            ),
            "no root: the links form a cyc",
        ),
        "link twice": (sdf('<link name="a"/><link name="a"/>'), "there is another link 'a'"),
        "missing link": (
            sdf('<link name="b"/>' + SDF_JOINT.format("fixed", "")),
            "joint 'j', .*<parent>: there is no link 'a'",
        ),
        "unknown type": (sdf_pair("screwy"), "joint 'j' has the type 'screwy', expected one of revolute"),
        "no axis": (sdf_pair(inside=""), "joint 'j' is revolute but has 0 axes, expected 1"),
        "zero axis": (sdf_pair(inside="<axis><xyz>0 0 0</xyz></axis>"), "axis of joint 'j' is .* expected a direction"),
        "limits crossed": (
            sdf_pair(inside="<axis><xyz>0 0 1</xyz><limit><lower>1</lower><upper>0</upper></limit></axis>"),
            "is above its upper lim",
        ),
        "negative mass": (
            sdf("<link name='a'><inertial><mass>-1</mass></inertial></link>"),
            "its mass is -1.0, expected no neg",
        ),
        "NaN mass": (
            sdf("<link name='a'><inertial><mass>nan</mass></inertial></link>"),
            "<mass> is 'nan', expected a finite num",
        ),
        "poses in a circle": (
            sdf(
                '<link name="a"><pose relative_to="b">0 0 0 0 0 0</pose></link>'
                '<link name="b"><pose relative_to="a">0 0 0 0 0 0</pose></link>' + SDF_JOINT.format("fixed", "")
            ),
            "the poses of 'a', 'b' are relative to each other",
        ),
        "zero quaternion": (
            sdf('<link name="a"><pose rotation_format="quat_xyzw">0 0 0 0 0 0 0</pose></link>'),
            "has a quaternion of zeros",
        ),
        "climbing mesh": (
            sdf(
                "<link name='a'><visual name='v'><geometry><mesh><uri>../../x.stl</uri></mesh></geometry></visual></link>"
            ),
            "the path '../../x.stl' climbs out of .*; expected a file inside",
        ),
    },
    "xml": {
        "unknown element": (mjcf("<robot/>"), "MuJoCo refuses it: .*unrecognized element.*'robot'"),
        "body twice": (mjcf("<body name='b'/><body name='b'/>"), "MuJoCo refuses it: .*repeated name 'b'"),
        "no mass": (mjcf("<body><joint/></body>"), "MuJoCo refuses it: .*mass"),
        "negative mass": (mjcf("<body><joint/><geom size='1' mass='-1'/></body>"), "MuJoCo refuses it: .*mass"),
        "impossible inertia": (
            mjcf("<body><joint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 9'/></body>"),
            "MuJoCo refuses it: .*inertia",
        ),
        "zero axis": (mjcf("<body><joint axis='0 0 0'/><geom size='1'/></body>"), "MuJoCo refuses it: .*axis"),
        "limits crossed": (
            mjcf("<body><joint range='1 -1' limited='true'/><geom size='1'/></body>"),
            "MuJoCo refuses it: .*range",
        ),
        "unknown type": (
            mjcf("<body><joint type='screw'/><geom size='1'/></body>"),
            "MuJoCo refuses it: .*keyword.*screw",
        ),
        "NaN": (mjcf("<body pos='0 nan 0'/>"), "line 1: <body> has pos='0 nan 0', expected plain decimal"),
        "climbing mesh": (
            "<mujoco><asset><mesh file='../x.stl'/></asset></mujoco>",
            "<mesh>: the path '../x.stl' climbs out of",
        ),
        "climbing include": (
            "<mujoco><include file='../x.xml'/></mujoco>",
            "<include>: the path '../x.xml' climbs out of",
        ),
        "mesh of the web": (
            "<mujoco><asset><mesh file='http://x.org/x.stl'/></asset></mujoco>",
            "is not that of a file",
        ),
        "a million bodies": (
            mjcf("<replicate count='1000000'><geom size='1'/></replicate>"),
            "count='1000000', more than 100000",
        ),
    },
}


def no_files(folder: str) -> Iterator[tuple[str, Case]]:
    """Arguments of the loaders that are no files of the kind."""
    for ending, load in LOADERS.items():
        for name, argument, message, kind in (
            ("None", None, "expected the path of an? .* file, got None", TypeError),
            ("a number", 5, "expected the path of an? .* file, got 5", TypeError),
            ("bytes", b"x", "expected the path of an? .* file, got b'x'", TypeError),
            ("no text", "", "expected the path of an? .* file, got ''", sl.ModelError),
            ("XML itself", WHOLE[ending] * 100, "expected the path of an? .* file, got '<.* \\.\\.\\.", sl.ModelError),
            ("a folder", folder, "is a directory, expected an? .* file", sl.ModelError),
            ("nothing", f"{folder}/nothing/at/all", "cannot be read: No such file or directory", sl.ModelError),
            ("a very long name", "x" * 1000, "cannot be read: File name too long", sl.ModelError),
            ("very long folders", "x" * 300 + "/y", "cannot be read: File name too long", sl.ModelError),
            ("a null byte", "a\0b", "cannot be read: embedded null", sl.ModelError),
            ("a device", "/dev/zero", "is a device, expected an? .* file", sl.ModelError),
        ):
            yield f"{ending}: {name}", Case(lambda load=load, argument=argument: load(argument), message, kind)  # type: ignore[misc]
