"""The packages of `cargo xtask dist`: the wheel is installed into an empty environment and does what the README says."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import unittest
import venv

import serving

ROOT = pathlib.Path(__file__).resolve().parents[3]
ADDRESS = "127.0.0.1:2222"


def readme_block(kind, containing):
    """The one block of the README of this kind that contains a text."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    [block] = [block for block in blocks if containing in block]
    return block


class WheelTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        dist = [os.environ.get("CARGO", "cargo"), "xtask", "dist", "--program", os.environ["FLOWGRID_BIN"],
                "--out", str(cls.folder)]
        subprocess.run(dist, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    def one(self, pattern):
        [found] = self.folder.glob(pattern)
        return found

    def test_the_wheel_runs_the_program_of_the_readme(self):
        venv.create(self.folder / "venv", with_pip=True)
        programs = self.folder / "venv" / "bin"
        pip = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
        subprocess.run([*pip, self.one("flowgrid-*.whl")], check=True)

        [port] = serving.free_ports(1)
        [name, *words] = shlex.split(readme_block("sh", "flowgrid server").replace(ADDRESS, f"127.0.0.1:{port}"))
        client = readme_block("python", "tf.Session")
        self.assertIn(ADDRESS, client)
        with serving.process([programs / name, *words]):
            done = subprocess.run([sys.executable, "-c", client.replace(ADDRESS, f"127.0.0.1:{port}")],
                                  stdout=subprocess.PIPE, text=True, timeout=300, check=True)
        self.assertEqual(done.stdout, "[[3.]\n [7.]]\n")

    def test_the_tarball_holds_the_program_and_its_licence(self):
        archive = self.one("flowgrid-*.tar.gz")
        folder = archive.name.removesuffix(".tar.gz")
        with tarfile.open(archive) as files:
            names = {"flowgrid", "README.md", "LICENSE", "CHANGELOG.md"}
            self.assertEqual(set(files.getnames()), {folder} | {f"{folder}/{name}" for name in names})
            files.extractall(self.folder, filter="data")
        program = self.folder / folder / "flowgrid"
        done = subprocess.run([program, "--help"], stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("server", done.stdout)


if __name__ == "__main__":
    unittest.main()
