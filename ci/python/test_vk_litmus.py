"""Tests of the Python package; `VK_LITMUS` names the program. Run with unittest or pytest."""

import doctest
import os
import subprocess
import tempfile
import unittest
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


if __name__ == "__main__":
    unittest.main()
