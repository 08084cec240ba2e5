"""Executes the kernels of harness/cli/examples on arrays. `VK_LITMUS` names the program, which needs naga."""

import json
import shutil
import unittest
from array import array
from pathlib import Path

import vk_litmus

FOLDER = Path(__file__).resolve().parents[2] / "harness/cli/examples"


@unittest.skipUnless(shutil.which("naga") and shutil.which("glslangValidator"), "naga or glslangValidator is not installed")
class Examples(unittest.TestCase):
    def test_contents_and_seeded_bugs(self):
        for case in json.loads((FOLDER / "cases.json").read_text(encoding="utf-8")):
            text = (FOLDER / case["kernel"]).read_text(encoding="utf-8")
            buffers = {name: array("I", data) for name, data in case["buffers"].items()}
            with self.subTest(case["kernel"]):
                result = vk_litmus.run(FOLDER / case["kernel"], grid=case["grid"], buffers=buffers).check()
                self.assertEqual(result.contents_vary is not None, case["varies"])
                for name, data in case["expected"].items():
                    self.assertEqual(list(result.buffers[name]), data)
            for bug in case["bugs"]:
                broken = text
                for old, new in bug["edits"]:
                    broken = broken.replace(old, new, 1)
                with self.subTest(case["kernel"], bug=bug["edits"]):
                    language = case["kernel"].rpartition(".")[2]
                    # Each call is another process: the seed repeats the findings.
                    result, again = (
                        vk_litmus.run(broken, language=language, grid=case["grid"], buffers=buffers, seed=5) for _ in range(2)
                    )
                    self.assertEqual([found.message for found in result.findings], [found.message for found in again.findings])
                    self.assertEqual(result.contents_vary is not None, bug["varies"])
                    lines = {place.line for found in result.findings for place in found.at}
                    self.assertTrue(set(bug["race"]) <= lines, lines)
                    if bug["race"]:
                        with self.assertRaisesRegex(vk_litmus.ShaderFailure, "this schedule again: replay='5:"):
                            result.check()


if __name__ == "__main__":
    unittest.main()
