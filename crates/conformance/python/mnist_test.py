"""Programs that learn digits on one ps and two workers with a MonitoredTrainingSession, as processes of their own: an
unmodified Python script, the same in Rust, and one of each in one job."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import serving

PROGRAM = "12_mnist_cluster"
PYTHON, RUST = "python", "rust"
STEPS = 200
# It starts at log(10) = 2.3. On TensorFlow's servers the script reaches less than 0.02, asynchronous and synchronous.
LOSS = 0.1


SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "flowgrid" / "examples" / f"{PROGRAM}.py"


def command(language):
    if language == RUST:
        return [pathlib.Path(os.environ["FLOWGRID_BIN"]).parent / "examples" / PROGRAM]
    return [sys.executable, SCRIPT]


def twin():
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("twin", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class MnistTest(unittest.TestCase):

    def train(self, languages, *flags, kind="flowgrid"):
        """The chief in the first language, another worker in the second."""
        with tempfile.TemporaryDirectory() as folder, serving.tasks(kind, {"ps": 1, "worker": 2}) as tasks:
            hosts = [f"--{job}_hosts={','.join(hosts)}" for job, hosts in tasks.spec.items()]
            workers = [
                subprocess.Popen([*command(language), *hosts, f"--task_index={task}", f"--checkpoint_dir={folder}",
                                  *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                for task, language in enumerate(languages)]
            try:
                # Separately: a queue runner that outlives its session writes a traceback between the printed lines.
                said = [worker.communicate(timeout=120) for worker in workers]
            finally:
                for worker in workers:
                    worker.kill()
                    worker.communicate()
            for worker, (printed, errors) in zip(workers, said):
                self.assertEqual(worker.returncode, 0, printed + errors)
                self.assertRegex(printed, r"(?m)^loss \d", errors)
            self.check_checkpoint(folder)

    def check_checkpoint(self, folder):
        reader = tf.train.load_checkpoint(folder)
        self.assertGreaterEqual(reader.get_tensor("global_step"), STEPS)
        shapes = reader.get_variable_to_shape_map()
        layers = {"hidden/kernel": [784, 64], "hidden/bias": [64], "logits/kernel": [64, 10], "logits/bias": [10]}
        self.assertEqual({name: shapes[name] for name in layers}, layers)
        # A worker that starts late makes few steps, so the result of both is checked, on pictures of later batches.
        pixels, labels = twin().digits(10_000)
        hidden = np.maximum(pixels @ reader.get_tensor("hidden/kernel") + reader.get_tensor("hidden/bias"), 0)
        logits = hidden @ reader.get_tensor("logits/kernel") + reader.get_tensor("logits/bias")
        right = logits[np.arange(len(labels)), labels]
        self.assertLess(np.mean(np.log(np.exp(logits).sum(axis=1)) - right), LOSS)

    def test_two_scripts(self):
        self.train([PYTHON, PYTHON])

    def test_two_scripts_together(self):
        self.train([PYTHON, PYTHON], "--sync_replicas")

    def test_two_rust_programs(self):
        self.train([RUST, RUST])
        self.train([RUST, RUST], "--sync_replicas")

    def test_a_script_and_a_rust_program(self):
        self.train([PYTHON, RUST])

    def test_a_rust_program_and_a_script_together(self):
        self.train([RUST, PYTHON], "--sync_replicas")


if __name__ == "__main__":
    unittest.main()
