"""Every Python block of README.md and docs/*.md runs; JSON and TOML blocks parse."""
import json
import pathlib
import subprocess
import sys
import tomllib
import unittest

import serving
from docs_pages import blocks

BLOCK = pathlib.Path(__file__).with_name("docs_block.py")


class DocsTest(unittest.TestCase):

    def test_python_blocks_run(self):
        found = blocks("python")
        self.assertGreater(len(found), 3)
        for name in found:
            with self.subTest(name), serving.cluster("flowgrid", {"ps": 1, "worker": 1}) as targets:
                program = [sys.executable, BLOCK, name, json.dumps(targets)]
                done = subprocess.run(program, capture_output=True, text=True, timeout=120)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_data_blocks_parse(self):
        for name, text in blocks("json").items():
            with self.subTest(name):
                json.loads(text)
        for name, text in blocks("toml").items():
            with self.subTest(name):
                tomllib.loads(text)


if __name__ == "__main__":
    unittest.main()
