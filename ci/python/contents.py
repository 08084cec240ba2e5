"""Compares the contents that the walk computes with those that a device leaves, for each row of `contents.tsv`.

    python3 contents.py --device lavapipe --each

A row is a shader of 32 invocations for each of its types. Without `--each`, rows of one type share a shader, and rows of a shader
with a difference run alone. The allowed differences are those of Vulkan's "Precision and Operation of SPIR-V Instructions", for the
ranges of the operands here.
"""

import argparse
import collections
import json
import math
import random
import re
import struct
import subprocess
import sys
import tempfile
import typing
from dataclasses import dataclass
from pathlib import Path

import vk_litmus

FOLDER = Path(__file__).resolve().parent
INVOCATIONS = 32
#: Words that one row may store in each invocation.
SLOTS = 16
ROWS_PER_SHADER = 16

SCALARS = {
    "i8": "int8_t", "u8": "uint8_t", "i16": "int16_t", "u16": "uint16_t", "i32": "int", "u32": "uint", "i64": "int64_t",
    "u64": "uint64_t", "f16": "float16_t", "f32": "float", "f64": "double",
}  # fmt: skip
COMPONENTS = {
    "i8": "int8_t(W({k}))", "u8": "uint8_t(W({k}))", "i16": "int16_t(W({k}))", "u16": "uint16_t(W({k}))", "i32": "int(W({k}))",
    "u32": "W({k})", "i64": "int64_t(pack64(uvec2(W({k}), W({k} + 64))))", "u64": "pack64(uvec2(W({k}), W({k} + 64)))",
    "f16": "H(W({k}))", "f32": "F({k})", "f64": "(double(F({k})) + double(F({k} + 64)) / 1048576.0lf)",
}  # fmt: skip

RELATIONS = {"equal": "==", "notEqual": "!=", "lessThan": "<", "lessThanEqual": "<=", "greaterThan": ">", "greaterThanEqual": ">="}

#: Extensions and functions for types that are not in core GLSL.
EXTRA = {
    "8": ("GL_EXT_shader_explicit_arithmetic_types_int8", "void put(uint8_t v) { put(uint(v)); } void put(int8_t v) { put(int(v)); }"),
    "16": ("GL_EXT_shader_explicit_arithmetic_types_int16", "void put(uint16_t v) { put(uint(v)); } void put(int16_t v) { put(int(v)); }"),
    "64": (
        "GL_EXT_shader_explicit_arithmetic_types_int64",
        "void put(uint64_t v) { put(unpack32(v)); } void put(int64_t v) { put(unpack32(uint64_t(v))); }",
    ),
    "f16": (
        "GL_EXT_shader_explicit_arithmetic_types_float16",
        "void put(float16_t v) { put(uint(float16BitsToUint16(v))); }\n"
        "float16_t H(uint w) { return uint16BitsToFloat16(uint16_t(w & 0x83ffu | ((w >> 10 & 7u) + 12u) << 10)); }\n"
        "uint toU(float16_t a) { return uint(a); } int toI(float16_t a) { return int(a); }",
    ),
    "f64": (
        "GL_EXT_shader_explicit_arithmetic_types_float64",
        "void put(double v) { put(unpackDouble2x32(v)); } void put(dvec2 v) { put(v.x); put(v.y); }\n"
        "double modff(double a) { double w; return modf(a, w); } double modfw(double a) { double w; modf(a, w); return w; }\n"
        "uint toU(double a) { return uint(a); } int toI(double a) { return int(a); }",
    ),
    "group": (
        "GL_KHR_shader_subgroup_vote GL_KHR_shader_subgroup_ballot GL_KHR_shader_subgroup_shuffle GL_KHR_shader_subgroup_shuffle_relative "
        "GL_KHR_shader_subgroup_arithmetic GL_KHR_shader_subgroup_quad",
        "uint shuffleUp(uint a) { uint b = subgroupShuffleUp(a, 2u); return gl_SubgroupInvocationID < 2u ? 0u : b; }\n"
        "uint shuffleDown(uint a) { uint b = subgroupShuffleDown(a, 2u); return gl_SubgroupInvocationID + 2u >= gl_SubgroupSize ? 0u : b; }\n"
        "uint divergentAdd(uint a) { if ((a & 1u) == 0u) return subgroupAdd(a); return subgroupAdd(a * 3u) + 1u; }\n"
        "uint divergentBallot(uint a) { uint n = 0u; for (uint k = a & 3u; k > 0u; --k) { n += subgroupBallot(true).x; } return n; }",
    ),
}

Parts = collections.namedtuple("Parts", "base count columns glsl")


def parts_of(ty: str) -> Parts:
    """Returns the base of a type or a format of texels, its numbers, its columns, and its name in GLSL."""
    if ty.startswith("r") and ty not in SCALARS:
        kind = "u32" if ty.endswith("ui") else "i32" if ty.endswith("i") else "f32"
        return Parts(kind, 4, 1, {"u": "uvec4", "i": "ivec4", "f": "vec4"}[kind[0]])
    if ty in SCALARS:
        return Parts(ty, 1, 1, SCALARS[ty])
    size = int(ty[-1])
    if ty.startswith("mat"):
        return Parts("f32", size * size, size, ty)
    return Parts({"u": "u32", "i": "i32", "v": "f32"}[ty[0]], size, 1, ty)


@dataclass(frozen=True)
class Row:
    name: str
    ty: str
    allowed: str
    expression: str

    @property
    def needs(self) -> typing.FrozenSet[str]:
        """The keys of `EXTRA` that the shader uses."""
        text = f"{self.parts.glsl} {self.expression}"
        names = {"8": r"u?int8_t|unpack8|u8vec", "16": r"u?int16_t|pack16|uint16Bits", "64": r"u?int64_t|unpack32|ToUint64"}
        names.update({"f16": r"float16_t|ToFloat16", "f64": r"double|dvec|dmat|packDouble|\d+lf", "group": "subgroup|divergent|shuffle"})
        found = {key for key, pattern in names.items() if re.search(pattern, text)}
        # The functions of these use other types.
        if "f16" in found:
            found |= {"16"}
        if "f64" in found and "Uint64" in text:
            found |= {"64"}
        return frozenset(found)

    @property
    def is_image(self) -> bool:
        return self.name == "Image"

    @property
    def parts(self) -> Parts:
        return parts_of(self.ty)

    def statements(self) -> str:
        parts = self.parts
        lines = []
        for letter, start in (("a", 0), ("b", 11), ("c", 23)):
            numbers = [COMPONENTS[parts.base].format(k=start + at) for at in range(parts.count)]
            if parts.columns > 1:
                numbers = [f"floor({number})" for number in numbers]
            lines.append(f"{parts.glsl} {letter} = {parts.glsl}({', '.join(numbers)});")
        expression = re.sub(r"\bT\b", parts.glsl, self.expression)
        expression = re.sub(r"\bU\b", "(a / 64)", expression)
        return " ".join(lines) + f" uint w = W(50); put({expression});"


def read_rows() -> typing.List[Row]:
    """Returns a row for each type of each line."""
    lines = (FOLDER / "contents.tsv").read_text(encoding="utf-8").splitlines()
    split = [line.split("\t") for line in lines if "\t" in line]
    return [Row(name, ty, allowed, expression) for name, types, allowed, expression in split for ty in types.split()]


def sample_rows() -> typing.List[Row]:
    """Returns one type of each line, another one for each."""
    by_name: typing.Dict[typing.Tuple[str, str], typing.List[Row]] = {}
    for row in read_rows():
        by_name.setdefault((row.name, row.expression), []).append(row)
    return [alike[number % len(alike)] for number, alike in enumerate(by_name.values())]


def shader_text(rows: typing.Sequence[Row]) -> str:
    """Returns a shader that stores the results of rows one after the other."""
    needs = set().union(*(row.needs for row in rows))
    extra = [EXTRA[key] for key in sorted(needs)]
    names = [name for extensions, _ in extra for name in extensions.split()]
    start = (FOLDER / "contents.glsl").read_text(encoding="utf-8")
    text = start.replace("EXTENSIONS", "\n".join(f"#extension {name} : enable" for name in names))
    text += "\n".join(functions for _, functions in extra) + "\n"
    scalars = sorted({row.parts.glsl for row in rows} & set(SCALARS.values()))
    for ty in scalars:
        text += "".join(f"bool {name}({ty} a, {ty} b) {{ return a {sign} b; }}\n" for name, sign in RELATIONS.items())
    if rows[0].is_image:
        text += image_functions(rows[0])
    text += "void main() {\n    i = gl_LocalInvocationIndex;\n"
    for number, row in enumerate(rows):
        text += f"    at = ({number} * {INVOCATIONS} + i) * {SLOTS};\n    {{ {row.statements()} }}\n"
    return text + "}\n"


def image_functions(row: Row) -> str:
    """Returns a function that stores a texel to an image and loads one of another."""
    vector = row.parts.glsl
    prefix = vector[:-4]
    value = "values" if prefix else "vec4(values & 127u) / 127"
    for name, steps in (("r32f", 128), ("rg16f", 128), ("rgba8", 255), ("rg16", 65535), ("rgb10_a2", 3), ("rg16_snorm", 32767)):
        if row.ty == name:
            value = f"vec4(values & {steps}u) / {steps}"
    bits = {"i": "ivec4(values) >> 25", "u": "values & 3u", "": value}[prefix]
    images = "".join(
        f"layout({row.ty}, binding = {at}) uniform {access} {prefix}image2D {name};\n"
        for at, access, name in ((3, "writeonly", "target"), (4, "readonly", "given"))
    )
    return images + (
        f"ivec2 P;\n{vector} texel(ivec2 p) {{ p = ivec2(i & 7u, i >> 3); uvec4 values = uvec4(W(1), W(2), W(3), W(4));"
        f" imageStore(target, p, {bits}); return imageLoad(given, p); }}\n"
    )


def inputs(folder: Path) -> typing.List[str]:
    """Writes random contents with a fixed seed; returns the options."""
    source = random.Random(7)
    words = [source.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]) if source.random() < 0.1 else source.getrandbits(32) for _ in range(256)]
    floats = [source.choice([-1, 1]) * source.choice([0.5, 1, 2.5]) if source.random() < 0.1 else source.uniform(-64, 64) for _ in range(256)]
    (folder / "words.bin").write_bytes(struct.pack("<256I", *words))
    (folder / "floats.bin").write_bytes(struct.pack("<256f", *floats))
    return [f"--buffer=0.0={folder}/words.bin", f"--buffer=0.1={folder}/floats.bin"]


def value_of(number: int, kind: str) -> float:
    """Returns a float by its bits."""
    size, form = {"f16": ("<H", "<e"), "f32": ("<I", "<f"), "f64": ("<Q", "<d")}[kind]
    return struct.unpack(form, struct.pack(size, number & (1 << 8 * struct.calcsize(size)) - 1))[0]


def rank_of(number: int, bits: int) -> int:
    """Returns a number such that adjacent floats have adjacent numbers."""
    sign = 1 << bits - 1
    return number if number < sign else sign - number


def is_allowed(row: Row, walk: int, device: int, kind: str) -> bool:
    """Returns true if a device may compute the number in place of that of the walk."""
    rules, _, _ = row.allowed.partition("@")
    if rules == "exact":
        return walk == device
    bits = {"f16": 16, "f32": 32, "f64": 64}[kind]
    first, second = value_of(walk, kind), value_of(device, kind)
    if math.isnan(first) or math.isnan(second):
        return math.isnan(first) and math.isnan(second)
    for rule in rules.split(","):
        name, _, bound = rule.partition(":")
        if name == "ulp" and abs(rank_of(walk, bits) - rank_of(device, bits)) <= int(bound):
            return True
        if name == "abs" and abs(first - second) <= float(bound):
            return True
    return False


def compare(row: Row, walk: bytes, device: bytes) -> typing.Tuple[str, str]:
    """Returns `equal`, `rounded` or `differs` for the results of a row, and the first difference."""
    kind = row.allowed.partition("@")[2] or row.parts.base
    step = 8 if kind == "f64" and row.allowed != "exact" else 4
    answer, where = "equal", ""
    for at in range(0, len(walk), step):
        one, other = (int.from_bytes(data[at : at + step], "little") for data in (walk, device))
        if one == other:
            continue
        if not is_allowed(row, one, other, kind):
            return "differs", f"invocation {at // 4 // SLOTS}, word {at // 4 % SLOTS}: walk {one:#x}, device {other:#x}"
        answer = "rounded"
    return answer, where


def execute(folder: Path, groups: typing.Sequence[typing.Sequence[Row]], device: str) -> typing.List[typing.List[typing.Tuple[str, str]]]:
    """Returns answers for the rows of each group, which share a shader."""
    files = []
    for number, rows in enumerate(groups):
        files.append(folder / f"{number:04}.comp")
        files[-1].write_text(shader_text(rows), encoding="utf-8")
    size = max(len(rows) for rows in groups) * INVOCATIONS * SLOTS * 4
    buffers = [*inputs(folder), f"--buffer=0.2=zeros:{size}", "--buffer=0.5=zeros:5120", "--buffer=0.6=random:128"]
    options = [*buffers, "--grid=1", "--format=json", "--contents", f"--device={device}", "--quiet"]
    if groups[0][0].is_image:
        options += ["--image=0.3=8x4", "--image=0.4=8x4,fill=random"]
    ran = subprocess.run([vk_litmus.program(), "race", *options, *files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    lines = {Path(line["file"]).name: line for line in map(json.loads, ran.stdout.splitlines())}
    answers = []
    for file, rows in zip(files, groups):
        line = lines.get(file.name)
        left = next((one for one in (line or {}).get("contents", []) if one["binding"] == 2), None)
        if line is None or left is None or left.get("device") is None:
            reason = (line or {}).get("why") or ran.stderr.strip()
            lacks = "not available" in reason or "lacks" in reason or "needs" in reason
            answers.append([("lacks" if lacks else "refused", reason)] * len(rows))
        elif line["verdict"] != "clean" or left.get("unknown") is not None:
            answers.append([("refused", f"{line['verdict']}, unknown byte {left.get('unknown')}")] * len(rows))
        else:
            walk, other = bytes.fromhex(left["bytes"]), bytes.fromhex(left["device"])
            each = INVOCATIONS * SLOTS * 4
            pairs = ((row, slice(number * each, (number + 1) * each)) for number, row in enumerate(rows))
            answers.append([compare(row, walk[part], other[part]) for row, part in pairs])
            # Other memory is compared byte for byte.
            for one in line["contents"]:
                pairs = zip(bytes.fromhex(one["bytes"]), bytes.fromhex(one.get("device") or one["bytes"]))
                differing = [f"{one['name']}, byte {at}: walk {a:#x}, device {b:#x}" for at, (a, b) in enumerate(pairs) if a != b]
                if differing and one["binding"] != 2:
                    answers[-1] = [("differs", differing[0])] * len(rows)
    return answers


def compare_rows(rows: typing.Sequence[Row], device: str, each: bool) -> typing.Dict[Row, typing.Tuple[str, str]]:
    """Returns the answer for each row."""
    groups: typing.List[typing.List[Row]] = []
    if not each:
        by_needs: typing.Dict[typing.Any, typing.List[Row]] = {}
        for row in rows:
            if not row.is_image:
                by_needs.setdefault(row.needs, []).append(row)
        for alike in by_needs.values():
            groups += [alike[start : start + ROWS_PER_SHADER] for start in range(0, len(alike), ROWS_PER_SHADER)]
    found: typing.Dict[Row, typing.Tuple[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="vk-litmus-") as folder:
        for group, answers in zip(groups, execute(Path(folder), groups, device) if groups else []):
            found.update({row: answer for row, answer in zip(group, answers) if answer[0] in ("equal", "rounded")})
        for is_image in (False, True):
            alone = [[row] for row in rows if row not in found and row.is_image == is_image]
            for [row], [answer] in zip(alone, execute(Path(folder), alone, device) if alone else []):
                found[row] = answer
    return {row: found[row] for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description="Compares contents of the walk with those of a device.")
    parser.add_argument("--device", default="lavapipe")
    parser.add_argument("--each", action="store_true", help="a shader for each row and type")
    parser.add_argument("--only", default="", help="rows whose name starts with this")
    given = parser.parse_args()
    rows = [row for row in read_rows() if row.name.startswith(given.only)]
    answers = compare_rows(rows, given.device, given.each)
    for row, (answer, where) in answers.items():
        if answer != "equal":
            print(f"{answer:8} {row.name} {row.ty} ({row.allowed}): {where}".rstrip(": "))
    counts = collections.Counter(answer for answer, _ in answers.values())
    print(f"{len(rows)} shaders on {given.device}: " + ", ".join(f"{count} {answer}" for answer, count in sorted(counts.items())))
    return 1 if counts["differs"] or counts["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
