"""Instructions that compilers emit for compute shaders, one per row of `shaders/instructions.tsv` of the tests of the program.

`check` and `race` accept each, and the simulated GPU computes the same bits as lavapipe. If Vulkan allows a range of results, the row
compares within it. A row's kind selects extensions and functions.
"""

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from dataclasses import dataclass
from pathlib import Path

import vk_litmus

SHADERS = Path(__file__).resolve().parents[2] / "harness/cli/tests/all/shaders"
#: Initial contents of the buffers.
INPUTS = ("0.0=floats:1024", "0.1=random:1024", "0.2=zeros:16384", "0.3=random:64", "0.4=floats:1024")
#: The largest number of results of a row.
PLACES = 4
#: Rows of a kind are tried together; after a failure, each half of them: lavapipe crashes on some combinations of good rows.
ROWS_PER_SHADER = 16
GOOD = "check free, race clean, sim as lavapipe"

NUMBERS = """
    i = gl_GlobalInvocationID.x, at = 0;
    uvec4 u = words[i], v = words[i + 16];
    ivec4 s = ivec4(u), t = ivec4(v);
    uint w = words[i + 32].x, x = words[i + 32].y;
    vec4 a = vec4(s >> 12) / 64, b = vec4(t >> 14) / 32, c = vec4((s ^ t) >> 16) / 8, unit = vec4(s >> 16) / 32768;
    bvec4 k = lessThan(u, v), l = lessThan(u.yzwx, v);
"""
WIDE = """void put(double value) { put(unpackDouble2x32(value)); }
void put(dvec2 value) { put(uvec4(unpackDouble2x32(value.x), unpackDouble2x32(value.y))); }
void put(bvec2 value) { put(uvec2(value)); }
bvec2 near64(dvec2 x, dvec2 y) { return lessThanEqual(abs(x - y), 1e-9 * max(dvec2(1), max(abs(x), abs(y)))); }
"""
WIDE_NUMBERS = """    dvec2 d = dvec2(a.xy) + dvec2(1, 2) / 1024, e = dvec2(b.xy) * 3 + 0.125;
    uint64_t m = pack64(u.xy), n = pack64(v.xy);
"""
DOT_NUMBERS = """    i8vec4 p = i8vec4(u), q = i8vec4(v);
    u8vec4 r = u8vec4(p), e = u8vec4(q);
"""


@dataclass(frozen=True)
class Row:
    """The instruction, its kind, and statements that store at most `PLACES` results."""

    name: str
    kind: str
    statements: str

    @property
    def line(self):
        return f"    {{ {self.statements}; }}"


def kind_texts(kind):
    """Returns the preamble, the functions and the inputs for rows of a kind."""

    def extensions(names):
        return "".join(f"#extension GL_{name} : enable\n" for name in names)

    groups = ["basic", "vote", "ballot", "shuffle", "shuffle_relative", "arithmetic", "quad"]
    groups = [f"KHR_shader_subgroup_{name}" for name in groups]
    sizes = ["int8", "int16", "int64", "float16"]
    sizes = [f"EXT_shader_{of}_{size}" for size in sizes for of in ("subgroup_extended_types", "explicit_arithmetic_types")]
    return {
        "wide": (extensions(["EXT_shader_explicit_arithmetic_types_int64"]), WIDE, WIDE_NUMBERS),
        "group": (extensions(groups), "", ""),
        "group-sizes": (extensions(groups + sizes), "", ""),
        # Dot products of integer vectors, for which GLSL has no functions.
        "dot": (
            extensions(["EXT_spirv_intrinsics", "EXT_shader_explicit_arithmetic_types_int8"]) + (SHADERS / "dot-products.glsl").read_text(),
            "",
            DOT_NUMBERS,
        ),
    }.get(kind, ("", "", ""))


def shader_text(rows):
    start = (SHADERS / "instructions.comp").read_text().removeprefix("#version 450\n")
    extensions, functions, numbers = kind_texts(rows[0].kind)
    statements = "".join(f"    at = {place * PLACES};\n{row.line}\n" for place, row in enumerate(rows))
    return f"#version 450\n{extensions}{start}{functions}void main() {{{NUMBERS}{numbers}{statements}}}\n"


def unnamed_rows(folder, rows):
    """Returns the rows of a shader whose source lines do not compile to their instruction."""
    file, module = folder / "names.comp", folder / "names.spv"
    file.write_text(shader_text(rows))
    compiled = subprocess.run(
        ["glslangValidator", "-V", "-g", "-H", "--target-env", "vulkan1.3", "-S", "comp", "-o", module, file], capture_output=True, text=True
    )
    assert compiled.returncode == 0, compiled.stdout
    text = compiled.stdout
    if rows[0].kind == "dot":
        # The compiler has no name for these instructions and prints their numbers.
        text = subprocess.run(["spirv-dis", module], capture_output=True, text=True, check=True).stdout.replace("Op", "")
    by_line, line = {}, 0
    for listed in text.splitlines():
        words = listed.split()
        if len(words) == 4 and words[0] == "Line":
            line = int(words[2])
        else:
            by_line.setdefault(line, set()).update(re.findall(r"\w+", listed))
    lines = file.read_text().splitlines()
    numbers = [lines.index(row.line) + 1 for row in rows]
    return [row for row, number in zip(rows, numbers) if row.name.split(".")[0] not in by_line.get(number, set())]


def lines_by_file(words, files, folder):
    """Returns the JSON lines of a command for all shaders, by the number of their file."""
    inputs = [f"--buffer={given}" for given in INPUTS]
    ran = subprocess.run([vk_litmus.program(), *words, "--format=json", *inputs, *files], cwd=folder, capture_output=True, text=True)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    names = [line.get("file") or line.get("source") or line.get("id") or "" for line in lines]
    return {re.match(r"\d*", Path(name).name).group(): line for name, line in zip(names, lines)}


def verdict_of(line):
    if line is None:
        return "refused"
    verdict = line.get("race") or line.get("verdict") or "?"
    return verdict if verdict in ("free", "clean") else f"{verdict} {line.get('why') or line.get('reason') or ''}"


def device_answer(own, other, has_lavapipe):
    """Compares the final contents on the simulated GPU and on lavapipe, which are hashes."""

    def contents(line):
        return [content["hash"] for content in ((line or {}).get("shader") or {}).get("contents", [])]

    if not contents(own):
        return f"none: {(own or {}).get('reason', 'refused')}"
    if not has_lavapipe:
        return "as lavapipe"
    if not contents(other):
        return "lavapipe left none"
    return "as lavapipe" if contents(own) == contents(other) else "not as lavapipe"


def answers(groups, has_lavapipe):
    """Returns an answer for each group of rows."""
    with tempfile.TemporaryDirectory(prefix="vk-litmus-") as name:
        folder = Path(name)
        files = [folder / f"{number:03}.comp" for number in range(len(groups))]
        for file, rows in zip(files, groups):
            file.write_text(shader_text(rows))
        check, race, sim, lavapipe = (
            lines_by_file(words, files, folder) if words else {}
            for words in (
                ["check", "--grid=1"],
                ["race", "--grid=1"],
                ["run", "--device=sim", "--instances=1", "--seed=1"],
                ["run", "--device=lavapipe", "--instances=1", "--seed=1"] if has_lavapipe else None,
            )
        )
    return [
        f"check {verdict_of(check.get(file.stem))}, race {verdict_of(race.get(file.stem))}, "
        f"sim {device_answer(sim.get(file.stem), lavapipe.get(file.stem), has_lavapipe)}"
        for file in files
    ]


@unittest.skipUnless(shutil.which("glslangValidator"), "glslangValidator is not installed")
class Instructions(unittest.TestCase):
    def setUp(self):
        lines = (SHADERS / "instructions.tsv").read_text().splitlines()[1:]
        by_kind = {}
        for row in (Row(*line.split("\t", 2)) for line in lines):
            by_kind.setdefault(row.kind, []).append(row)
        starts = [(rows, start) for rows in by_kind.values() for start in range(0, len(rows), ROWS_PER_SHADER)]
        self.groups = [rows[start : start + ROWS_PER_SHADER] for rows, start in starts]
        self.assertGreater(sum(map(len, self.groups)), 230)

    def test_rows_compile_to_their_instruction(self):
        with tempfile.TemporaryDirectory(prefix="vk-litmus-") as folder:
            # Types, constants and similar instructions are on other lines; alone, a row has them somewhere.
            alone = [row for rows in self.groups for row in unnamed_rows(Path(folder), rows)]
            for row in alone:
                file = Path(folder) / "alone.comp"
                file.write_text(shader_text([row]))
                listed = subprocess.run(
                    ["glslangValidator", "-V", "-H", "--target-env", "vulkan1.3", "-S", "comp", "-o", "/dev/null", file],
                    capture_output=True,
                    text=True,
                )
                self.assertIn(row.name.split(".")[0], re.findall(r"\w+", listed.stdout))

    def test_every_instruction_that_compilers_emit(self):
        listed = subprocess.run([vk_litmus.program(), "devices", "--format=json"], stdout=subprocess.PIPE, text=True)
        has_lavapipe = any(device["identity"]["name"] == "lavapipe" for device in json.loads(listed.stdout or "[]"))
        tried, failed = self.groups, {}
        while tried:
            found = [(rows, answer) for rows, answer in zip(tried, answers(tried, has_lavapipe)) if answer != GOOD]
            failed.update({rows[0].name: answer for rows, answer in found if len(rows) == 1})
            halves = [(rows[: len(rows) // 2], rows[len(rows) // 2 :]) for rows, _ in found if len(rows) > 1]
            tried = [half for both in halves for half in both]
        self.assertEqual(failed, {})


if __name__ == "__main__":
    unittest.main()
