"""Serving several submodels takes the memory of serving the largest alone: their weights are views, not copies."""

import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BIN_FOLDER", ROOT / "build" / "release" / "bin"))


class MemoryTest(unittest.TestCase):
    def test_three_submodels_take_the_memory_of_one(self):
        command = [sys.executable, "-B", str(ROOT / "scripts" / "memory.py"), str(BIN), str(ROOT / "models" / "abacus")]
        result = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
