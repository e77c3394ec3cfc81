#!/usr/bin/env python3
"""Writes the ECS API's operations and shapes as C++ tables (src/codec/api_shapes.h).

usage: gen-api-shapes.py data/ecs-api.json OUTPUT.cpp

The output depends on the input only: names are sorted. What the C++ side could not check (a pattern,
a map's key, a kind that it does not know) stops the build here instead of being left out silently.
"""

import json
import os
import sys

KINDS = {
    "structure": "kStructure",
    "union": "kUnion",
    "list": "kList",
    "map": "kMap",
    "string": "kString",
    "integer": "kInteger",
    "long": "kLong",
    "double": "kDouble",
    "boolean": "kBoolean",
    "timestamp": "kTimestamp",
}

# The model's regular expressions, and the character class of api_shapes.h that checks the same.
PATTERNS = {
    r"[a-zA-Z0-9\.\*\-]+": "kInstanceType",
    r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)": "kTag",
}


class ModelError(Exception):
    pass


def text(value):
    if not all(" " <= c <= "~" for c in value):
        raise ModelError(f"{value!r}: not printable ASCII")
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def number(value):
    if value != int(value):
        raise ModelError(f"bound {value}: not a whole number")
    return str(int(value))


class Generator:
    def __init__(self, model):
        self.operations = model["operations"]
        self.shapes = model["shapes"]
        self.names = sorted(self.shapes)
        self.index = {name: i for i, name in enumerate(self.names)}
        self.lines = []

    def shape_index(self, name, where):
        if name not in self.index:
            raise ModelError(f"{where}: names the shape {name}, which is not there")
        return self.index[name]

    def members(self, name, shape):
        members = shape.get("m", {})
        if not members:
            return "{}"
        required = set(shape.get("req", []))
        unknown = required - set(members)
        if unknown:
            raise ModelError(f"{name}: requires {sorted(unknown)}, which are no members")
        self.lines.append(f"constexpr ShapeMember kMembersOf{name}[] = {{")
        for member in sorted(members):
            target = self.shape_index(members[member], f"{name}.{member}")
            flag = "true" if member in required else "false"
            self.lines.append(f"    {{{text(member)}, {target}, {flag}}},")
        self.lines.append("};")
        return f"kMembersOf{name}"

    def values(self, name, shape):
        if "enum" not in shape:
            return "{}"
        values = ", ".join(text(value) for value in shape["enum"])
        self.lines.append(f"constexpr std::string_view kValuesOf{name}[] = {{{values}}};")
        return f"kValuesOf{name}"

    def element(self, name, shape):
        if shape["t"] == "list":
            return self.shape_index(shape["of"], name)
        if shape["t"] == "map":
            key = self.shapes[shape["k"]]
            if key["t"] != "string" or set(key) & {"enum", "min", "max", "pattern"}:
                raise ModelError(f"{name}: keys other than plain strings are not checked yet")
            return self.shape_index(shape["v"], name)
        return 0

    def characters(self, name, shape):
        if "pattern" not in shape:
            return "kAny"
        if shape["pattern"] not in PATTERNS:
            raise ModelError(f"{name}: the pattern {shape['pattern']} has no character class; add "
                             f"one to src/codec/api_shapes.h and to PATTERNS here")
        return PATTERNS[shape["pattern"]]

    def shape_row(self, name):
        shape = self.shapes[name]
        if shape["t"] not in KINDS:
            raise ModelError(f"{name}: unknown kind {shape['t']}")
        members = self.members(name, shape)
        values = self.values(name, shape)
        low = number(shape["min"]) if "min" in shape else "kUnstatedMin"
        high = number(shape["max"]) if "max" in shape else "kUnstatedMax"
        return (f"    {{{text(name)}, ShapeKind::{KINDS[shape['t']]}, {members}, "
                f"{self.element(name, shape)}, {values}, {low}, {high}, "
                f"Characters::{self.characters(name, shape)}}},")

    def operation_row(self, name):
        operation = self.operations[name]
        return (f"    {{{text(name)}, {self.shape_index(operation['in'], name)}, "
                f"{self.shape_index(operation['out'], name)}}},")

    def generate(self):
        shape_rows = [self.shape_row(name) for name in self.names]
        operation_rows = [self.operation_row(name) for name in sorted(self.operations)]
        return "\n".join([
            "// Written by scripts/gen-api-shapes.py from data/ecs-api.json; do not edit.",
            '#include "codec/api_shapes.h"',
            "",
            "namespace cotenant::codec {",
            "namespace {",
            "",
            *self.lines,
            "",
            "constexpr Shape kShapes[] = {",
            *shape_rows,
            "};",
            "",
            "constexpr Operation kOperations[] = {",
            *operation_rows,
            "};",
            "",
            "}  // namespace",
            "",
            "std::span<const Shape> api_shapes() { return kShapes; }",
            "std::span<const Operation> api_operations() { return kOperations; }",
            "",
            "}  // namespace cotenant::codec",
            "",
        ])


def main(argv):
    if len(argv) != 3:
        print(f"usage: {argv[0]} MODEL.json OUTPUT.cpp", file=sys.stderr)
        return 2
    with open(argv[1], encoding="utf-8") as model_file:
        model = json.load(model_file)
    try:
        output = Generator(model).generate()
    except (ModelError, KeyError) as error:
        print(f"{argv[1]}: {error}", file=sys.stderr)
        return 1
    os.makedirs(os.path.dirname(os.path.abspath(argv[2])), exist_ok=True)
    with open(argv[2], "w", encoding="utf-8") as output_file:
        output_file.write(output)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
