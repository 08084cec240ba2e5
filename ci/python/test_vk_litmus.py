"""Tests of the Python package; `VK_LITMUS` names the program. Run with unittest or pytest."""

import doctest
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from array import array
from pathlib import Path
from unittest import mock

import vk_litmus

RACY = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main"
OpExecutionMode %main LocalSize 2 1 1
OpName %data "data"
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %data DescriptorSet 0
OpDecorate %data Binding 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%zero = OpConstant %u32 0
%block = OpTypeStruct %u32
%pblock = OpTypePointer StorageBuffer %block
%pu32 = OpTypePointer StorageBuffer %u32
%data = OpVariable %pblock StorageBuffer
%main = OpFunction %void None %fn
%entry = OpLabel
%p = OpAccessChain %pu32 %data %zero
OpStore %p %zero
OpReturn
OpFunctionEnd
"""


def load_tests(loader, tests, ignore):
    """Adds the examples of the package and of the book."""
    tests.addTests(doctest.DocTestSuite(vk_litmus))
    page = Path(__file__).resolve().parents[2] / "docs/howto/python.md"
    tests.addTests(doctest.DocFileSuite(str(page), module_relative=False))
    return tests


class Options(unittest.TestCase):
    def test_keyword_arguments_become_options(self):
        options = {"grid": (4, 1, 1), "strict": True, "quiet": False, "seed": 1, "device": None, "define": ["A", "B=1"]}
        expected = ["--grid=4,1,1", "--strict", "--seed=1", "--define=A", "--define=B=1"]
        self.assertEqual(vk_litmus._options(options), expected)


class Answers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_check_lists_outcomes_and_answers_the_question(self):
        [answer] = vk_litmus.check("mp/MP+rel-acq")
        self.assertEqual((answer.race, answer.queries[0].holds), ("free", False))
        self.assertEqual([str(one) for one in answer.outcomes if not one.allowed], ["P1:r0=1 P1:r1=0"])
        self.assertEqual(answer.raw["schema"], "vk-litmus/check/1")

    def test_race_finds_two_writes(self):
        file = self.folder / "racy.spvasm"
        file.write_text(RACY)
        [answer] = vk_litmus.race(file, grid=1)
        self.assertEqual((answer.verdict, [one.kind for one in answer.findings]), ("racy", ["race"]))
        self.assertTrue(answer.findings[0].message)

    def test_results_of_a_run_are_those_in_its_folder(self):
        out = self.folder / "out"
        ran = vk_litmus.run("mp/MP+rel-acq", "mp/MP+rlx-rlx", device="sim", instances=20000, seed=1, out=out)
        self.assertEqual([(one.id, one.verdict) for one in ran], [("mp/MP+rel-acq", "conforms"), ("mp/MP+rlx-rlx", "conforms")])
        weak = [outcome.count for outcome in ran[1].outcomes if outcome.weak]
        self.assertTrue(weak[0] > 0)
        again = vk_litmus.read_results(out)
        self.assertEqual([(one.id, one.outcomes) for one in again], [(one.id, one.outcomes) for one in ran])
        page = vk_litmus.report(out, out=self.folder / "report.html")
        self.assertIn("MP+rel-acq", page.read_text(encoding="utf-8"))

    def test_outcomes_become_rows(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        ran = vk_litmus.run("mp/MP+rel-acq", device="sim", instances=20000, seed=1)
        frame = vk_litmus.to_dataframe(ran)
        self.assertEqual(frame["count"].sum(), ran[0].instances)


ARRAYS = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "main" %index
OpExecutionMode %main LocalSize 4 1 1
OpName %data "data"
OpName %out "out"
OpDecorate %index BuiltIn LocalInvocationIndex
OpDecorate %array ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %data DescriptorSet 0
OpDecorate %data Binding 0
OpDecorate %out DescriptorSet 0
OpDecorate %out Binding 1
OpDecorate %constants Block
OpMemberDecorate %constants 0 Offset 0
%void = OpTypeVoid
%fn = OpTypeFunction %void
%u32 = OpTypeInt 32 0
%bool = OpTypeBool
%zero = OpConstant %u32 0
%four = OpConstant %u32 4
%array = OpTypeArray %u32 %four
%block = OpTypeStruct %array
%constants = OpTypeStruct %u32
%pblock = OpTypePointer StorageBuffer %block
%pu32 = OpTypePointer StorageBuffer %u32
%ppush = OpTypePointer PushConstant %constants
%ppu32 = OpTypePointer PushConstant %u32
%pin = OpTypePointer Input %u32
%data = OpVariable %pblock StorageBuffer
%out = OpVariable %pblock StorageBuffer
%push = OpVariable %ppush PushConstant
%index = OpVariable %pin Input
%main = OpFunction %void None %fn
%entry = OpLabel
%t = OpLoad %u32 %index
%p = OpAccessChain %pu32 %data %zero %t
%q = OpAccessChain %pu32 %out %zero TARGET
%c = OpAccessChain %ppu32 %push %zero
OpBranch %loop
%loop = OpLabel
%v = OpLoad %u32 %p
%again = OpIEqual %bool %v %zero
OpLoopMerge %done %next None
OpBranch %test
%test = OpLabel
OpBranchConditional %again %next %done
%next = OpLabel
OpBranch %loop
%done = OpLabel
%k = OpLoad %u32 %c
%r = OpIMul %u32 %v %k
OpStore %q %r
OpReturn
OpFunctionEnd
"""


class Arrays(unittest.TestCase):
    """Multiplies `data` by a push constant; waits forever for a zero."""

    def run_arrays(self, text=ARRAYS.replace("TARGET", "%t"), data=(1, 2, 3, 4), **options):
        buffers = {"data": array("I", data), "out": bytearray(16), **options.pop("buffers", {})}
        return vk_litmus.run(text, buffers=buffers, **{"push": (3,), "language": "spvasm", **options})

    def test_contents_have_the_types_of_the_arguments(self):
        result = self.run_arrays()
        self.assertEqual((result.verdict, result.contents_vary, result.findings), ("clean", None, []))
        self.assertEqual(result.buffers, {"data": array("I", [1, 2, 3, 4]), "out": bytearray(array("I", [3, 6, 9, 12]))})
        by_binding = vk_litmus.run(
            ARRAYS.replace("TARGET", "%t"), language="spvasm", buffers={"0.0": bytes([1] * 16), "0.1": bytes(16)}, push=array("I", [2])
        )
        self.assertEqual(by_binding.buffers["0.1"], bytes([2] * 16))

    def test_a_race_fails_the_check(self):
        result = self.run_arrays(ARRAYS.replace("TARGET", "%zero"), seed=3)
        self.assertEqual((result.verdict, result.findings[0].kind), ("racy", "race"))
        with self.assertRaisesRegex(vk_litmus.ShaderFailure, "(?s)`out.*this schedule again: replay='3:0'"):
            result.check()

    def test_a_kernel_that_waits_forever_is_a_finding(self):
        self.assertEqual(self.run_arrays(data=(1, 0, 1, 1)).findings[0].kind, "hang")

    def test_a_kernel_that_does_not_end_in_time_is_no_answer(self):
        counts = "%old = OpLoad %u32 %q\n%more = OpIAdd %u32 %old %four\nOpStore %q %more\n%v = OpCopyObject %u32 %zero"
        endless = ARRAYS.replace("TARGET", "%t").replace("%v = OpLoad %u32 %p", counts)
        with self.assertRaisesRegex(vk_litmus.ProgramError, "undecided: line [0-9]+: the time limit was reached in this loop, .*; expected a kernel that ends"):
            self.run_arrays(endless, time="100ms")

    def test_a_short_buffer_is_a_finding_that_names_it(self):
        result = self.run_arrays(data=(1, 2))
        self.assertRegex(str(result), "out-of-bounds: .*`data`, which has 8")

    def test_numpy_arrays(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not installed")
        result = self.run_arrays(buffers={"data": numpy.array([[1, 2], [3, 4]], dtype="uint32")})
        self.assertEqual(result.buffers["data"].shape, (2, 2))
        with self.assertRaisesRegex(ValueError, "buffers\\['data'\\]: expected contiguous"):
            self.run_arrays(buffers={"data": numpy.zeros(8, dtype="uint32")[::2]})
        with self.assertRaisesRegex(TypeError, "buffers\\['data'\\]: expected elements in the byte order of this machine"):
            self.run_arrays(buffers={"data": numpy.zeros(4, dtype="uint32").astype(numpy.dtype("uint32").newbyteorder())})
        self.assertEqual(self.run_arrays(grid=numpy.array([1, 1]), push=numpy.array([2], dtype="uint32")).verdict, "clean")
        self.assertEqual(self.run_arrays(push=(numpy.int32(2),), grid=numpy.int64(1)).buffers["out"][4], 4)
        structure = numpy.array([(5,)], dtype=[("factor", "<u4")])
        self.assertEqual(self.run_arrays(push=structure).buffers["out"][4], 10)

    @unittest.skipUnless(shutil.which("glslangValidator"), "glslangValidator is not installed")
    def test_images_have_the_texels_that_the_shader_leaves(self):
        text = """#version 450
layout(local_size_x = 2, local_size_y = 2) in;
layout(set = 0, binding = 0, rgba8) uniform image2D picture;
layout(set = 0, binding = 1) uniform sampler2D weights;
layout(push_constant) uniform P { uint factor; uint unused; };
void main() {
    ivec2 at = ivec2(gl_LocalInvocationID.xy);
    float weight = textureLod(weights, vec2(0.75, 0.5), 0.0).x;
    imageStore(picture, at, (1.0 - imageLoad(picture, at)) * weight * float(factor));
}"""

        def run(picture=bytes(16), size=(2, 2), name="rgba8unorm", **options):
            images = {"picture": vk_litmus.Image(picture, size, name), "0.1": vk_litmus.Image(array("f", [0, 0.2]), (2, 1), "r32f")}
            return vk_litmus.run(text, language="comp", buffers={}, images=images, sampler={"weights": "nearest"}, **{"push": (3, 0), **options})

        result = run().check()
        self.assertEqual(result.images, {"picture": bytes([153] * 16), "0.1": array("f", [0, 0.2])})
        cases = [
            ({"picture": bytes(12)}, ValueError, r"images\['picture'\]: expected 16 bytes for 2x2 texels of rgba8, got 12"),
            ({"size": (0, 2)}, ValueError, r"images\['picture'\].size: expected one to three positive sizes"),
            ({"name": "rgba8f"}, ValueError, r"images\['picture'\]: expected a format such as 'rgba8unorm'"),
            ({"picture": array("f", [0] * 4)}, TypeError, r"images\['picture'\]: expected elements of u8, as in rgba8, got format 'f'"),
            ({"picture": array("i", [0] * 4), "name": "r32i"}, vk_litmus.InputError, "the format r32i for `picture` .*; expected rgba8, as in the shader"),
            ({"push": (3,)}, vk_litmus.InputError, "push constants up to byte 3; expected 8 bytes, those of their block"),
        ]
        for options, error, message in cases:
            with self.subTest(options), self.assertRaisesRegex(error, message):
                run(**options)
        with self.assertRaisesRegex(TypeError, r"images\['picture'\]: expected vk_litmus.Image, got bytes"):
            vk_litmus.run_shader(text, language="comp", images={"picture": bytes(16)})

    def test_a_device_leaves_the_same_contents(self):
        result = self.run_arrays(device="sim").check()
        self.assertEqual([bytes.fromhex(one["device"]) for one in result.raw["contents"]], [bytes(one) for one in result.buffers.values()])
        self.assertIsNone(result.device_difference)

    def test_a_difference_of_a_device_names_element_and_values(self):
        # A program that claims another value for the device.
        honest = vk_litmus._execute

        def lying(*arguments):
            ran = honest(*arguments)
            answer = json.loads(ran.stdout)
            answer["contents"][1]["device"] = "03000000" + "07000000" + answer["contents"][1]["device"][16:]
            return subprocess.CompletedProcess(ran.args, ran.returncode, json.dumps(answer), ran.stderr)

        with mock.patch.object(vk_litmus, "_execute", lying):
            result = self.run_arrays(device="sim", buffers={"out": array("I", [0] * 4)})
        with self.assertRaisesRegex(vk_litmus.ShaderFailure, r"buffers\['out'\], element 1: 7 on sim; expected 6, which the walk computes"):
            result.check()

    def test_floats_may_differ_by_units_in_the_last_place(self):
        def first(walk, device, ulps):
            return vk_litmus._first_difference(memoryview(array("f", walk)), bytes(array("f", walk)), bytes(array("f", device)), ulps)

        above = 1.0000001192092896
        self.assertIsNone(first([1.0, float("nan"), 0.0], [above, -float("nan"), -0.0], 1))
        self.assertEqual(first([1.0], [above], 0), (0, 1.0, above))
        self.assertEqual(first([0.5, -1.0], [0.5, 1.0], 5), (1, -1.0, 1.0))

    def test_wrong_arguments_name_the_parameter_and_the_expectation(self):
        shared = bytearray(32)
        cases = [
            ({"buffers": {"data": [1, 2, 3, 4]}}, TypeError, "buffers\\['data'\\]: expected a NumPy array.*got list"),
            ({"buffers": {"data": array("d", [1, 2])}}, TypeError, "'data'\\]: expected elements of u32, as in the shader, got format 'd'"),
            ({"buffers": {"data": bytearray(3)}}, ValueError, "buffers\\['data'\\]: expected a positive multiple of 4 bytes, got 3"),
            ({"buffers": {"data": memoryview(shared)[:16], "out": memoryview(shared)[8:24]}}, ValueError, "shares memory with"),
            ({"buffers": {"0.0": bytearray(16)}}, ValueError, "one binding: expected one array"),
            ({"buffers": {"none": bytearray(16)}}, vk_litmus.InputError, "`none`, which the kernel does not have"),
            ({"push": ("x",)}, TypeError, "push: expected numbers"),
            ({"push": (0.5, 1e300)}, TypeError, "push: expected numbers"),
            ({"push": (2, 1 << 40)}, ValueError, "push\\[1\\]: 1099511627776 does not fit in 32 bits"),
            ({"grid": (0, 1)}, ValueError, "grid: expected one to three positive numbers"),
            ({"grid": "4"}, ValueError, "grid: expected one to three positive numbers"),
            ({"grid": None}, ValueError, "grid: expected one to three positive numbers"),
            ({"grid": 2**31}, vk_litmus.InputError, "grid: 2147483648 is too large to run whole; expected a smaller one"),
            ({"subgroup_size": 3}, vk_litmus.InputError, "invalid value '3' for subgroup_size: expected a power of two up to 128$"),
            ({"entry": "none"}, vk_litmus.InputError, "^shader.spvasm: no entry point `none`"),
            ({"entri": "none"}, vk_litmus.InputError, "^unexpected argument entri found$"),
            ({"spec": {7: 1}}, vk_litmus.InputError, "specialization constant 7"),
            ({"language": 3}, TypeError, "language: expected str or NoneType, got int"),
            ({"ulps": "1"}, TypeError, "ulps: expected int, got str"),
            ({"buffers": {0: bytearray(16)}}, ValueError, "buffers: expected names of buffers or 'SET.BINDING', got 0"),
            ({"buffers": {"a=b": bytearray(16)}}, ValueError, "buffers: expected names of buffers"),
            ({"grid": 2.5}, ValueError, "grid: expected one to three positive numbers"),
            ({"device": "no-such-device"}, vk_litmus.ProgramError, "no-such-device"),
        ]
        for options, error, message in cases:
            with self.subTest(options), self.assertRaisesRegex(error, message):
                self.run_arrays(**options)
        for shader in (None, b"shader.comp"):
            with self.assertRaisesRegex(TypeError, "shader: expected str or PathLike, got"):
                vk_litmus.run_shader(shader, buffers={})
        with self.assertRaisesRegex(TypeError, "buffers: expected a mapping of names to arrays, got list"):
            vk_litmus.run_shader("shader.comp", buffers=[bytearray(4)])
        with self.assertRaisesRegex(ValueError, "shader: expected a file, or a source text with `language`"):
            vk_litmus.run_shader("a\nb", buffers={})
        given = {"language": "spvasm", "buffers": {"out": bytearray(16)}, "push": (1,)}
        with self.assertRaisesRegex(vk_litmus.InputError, "missing input: `data` at set 0, binding 0; expected a buffer"):
            vk_litmus.run(ARRAYS.replace("TARGET", "%t"), **given)
        with self.assertRaisesRegex(vk_litmus.InputError, "needs-inputs: data: supply it"):
            vk_litmus.run(ARRAYS.replace("TARGET", "%t"), inputs="auto", **given)


class Failures(unittest.TestCase):
    def test_wrong_input_is_an_input_error_with_a_place(self):
        with self.assertRaises(vk_litmus.InputError) as caught:
            vk_litmus.check("mp/no-such-test")
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("no-such-test", str(caught.exception))

    def test_a_name_that_looks_like_an_option_is_a_name(self):
        with self.assertRaises(vk_litmus.InputError) as caught:
            vk_litmus.check("--help")
        self.assertIn("--help", str(caught.exception))

    def test_a_missing_program_says_what_to_install(self):
        with mock.patch.dict(os.environ, {"VK_LITMUS": "/nonexistent/vk-litmus"}):
            with self.assertRaisesRegex(vk_litmus.ProgramError, "does not start"):
                vk_litmus.check("mp/MP+rel-acq")

    def test_a_crash_is_no_answer(self):
        crashed = subprocess.CompletedProcess([], -11, "", "")
        with mock.patch.object(subprocess, "run", return_value=crashed):
            with self.assertRaises(vk_litmus.ProgramError) as caught:
                vk_litmus.check("mp/MP+rel-acq")
        self.assertEqual(caught.exception.code, -11)

    def test_damaged_results_are_named_by_line(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(vk_litmus.InputError, "run.jsonl"):
                vk_litmus.read_results(folder)
            (Path(folder) / "run.jsonl").write_text('{"id": "a"}\n{"id": \n')
            with self.assertRaisesRegex(vk_litmus.InputError, "run.jsonl:2"):
                vk_litmus.read_results(folder)
            # A run that is killed leaves the last line without its end.
            (Path(folder) / "run.jsonl").write_text('{"id": "a"}\n{"id": ')
            self.assertEqual([one.id for one in vk_litmus.read_results(folder)], ["a"])


class Plugin(unittest.TestCase):
    def test_the_fixture_fails_a_test_with_a_race(self):
        try:
            import pytest
        except ImportError:
            self.skipTest("pytest is not installed")
        with tempfile.TemporaryDirectory() as folder:
            test = Path(folder) / "test_kernel.py"
            test.write_text(
                f"TEXT = {ARRAYS.replace('TARGET', '%t')!r}\n"
                "def test_kernel(run_shader):\n"
                "    for text in (TEXT, TEXT.replace('%out %zero %t', '%out %zero %zero')):\n"
                "        run_shader(text, language='spvasm', buffers={'data': bytes([1] * 16), 'out': bytes(16)}, push=(1,))\n"
            )
            code = pytest.main(["-q", "-p", "vk_litmus.pytest_plugin", "-p", "no:cacheprovider", "--vk-litmus-seed", "4", str(test)])
        self.assertEqual(code, 1)


if __name__ == "__main__":
    unittest.main()
