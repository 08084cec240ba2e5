"""lavapipe leaves the contents that the walk computes, for one type of each row of `contents.tsv`. `VK_LITMUS` names the program."""

import json
import shutil
import subprocess
import unittest

import contents
import vk_litmus


class Contents(unittest.TestCase):
    @unittest.skipUnless(shutil.which("glslangValidator"), "glslangValidator is not installed")
    def test_lavapipe_leaves_the_contents_of_the_walk(self):
        listed = subprocess.run([vk_litmus.program(), "devices", "--format", "json"], stdout=subprocess.PIPE, encoding="utf-8")
        if not any(device["identity"]["name"] == "lavapipe" for device in json.loads(listed.stdout or "[]")):
            self.skipTest("lavapipe is not installed")
        self.assertGreater(len(contents.read_rows()), 500)
        # `contents.py` and `ci/soak` compare all.
        rows = contents.sample_rows()
        answers = contents.compare_rows(rows, "lavapipe", False)
        different = {f"{row.name} {row.ty}": answer for row, answer in answers.items() if answer[0] not in ("equal", "rounded")}
        self.assertEqual(different, {})

    def test_a_difference_beyond_the_precision_is_one(self):
        [row] = [row for row in contents.read_rows() if (row.name, row.ty) == ("FDiv", "f32")]
        one = (0x3F800000).to_bytes(4, "little")
        for other, answer in ((0x3F800000, "equal"), (0x3F800003, "rounded"), (0x3F800004, "differs"), (0xBF800000, "differs")):
            self.assertEqual(contents.compare(row, one, other.to_bytes(4, "little"))[0], answer)


if __name__ == "__main__":
    unittest.main()
