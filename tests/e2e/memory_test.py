"""What a server holds in memory: the weights once for all submodels, and nothing of a request that was cancelled."""

import concurrent.futures
import random
import subprocess
import sys
import unittest

from harness import BIN, MODEL, ROOT, Stubs

from memory import resident
from with_server import ServerProcess
from nestor.v1 import generation_pb2


class MemoryTest(unittest.TestCase):
    def test_three_submodels_take_the_memory_of_one(self):
        command = [sys.executable, "-B", str(ROOT / "scripts" / "memory.py"), str(BIN), str(MODEL)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_cancelled_requests_leave_nothing(self):
        with ServerProcess(BIN, MODEL, ("--queue-max", "64")) as server, \
                concurrent.futures.ThreadPoolExecutor(16) as pool:
            stubs = Stubs(server.address)
            self.addCleanup(stubs.channel.close)

            def start_and_cancel(seed):
                chance = random.Random(seed)
                generation = generation_pb2.Generation(
                    text="<|user|>Count: " + "9 " * chance.randint(1, 40), ignore_eos=True, max_output_tokens=512,
                    answer=generation_pb2.AnswerOptions(submodel=chance.choice(("2.5m", "1.2m", "0.5m"))))
                stream = stubs.stream(generation)
                for _ in range(chance.choice((0, 0, 1, 2, 5, 20))):
                    next(stream)
                stream.cancel()

            def memory_after(seeds):
                list(pool.map(start_and_cancel, seeds))
                return resident(server.process.pid)["VmRSS"]

            before = memory_after(range(300))  # by then pages, slots and threads are in use
            after = memory_after(range(300, 1300))
            print(f"resident after 300 cancelled requests {before >> 10} KiB, after 1,000 more {after >> 10} KiB")
            self.assertLess(after - before, 1000 * 2048, "more than 2 KiB left by each of 1,000 cancelled requests")


if __name__ == "__main__":
    unittest.main()
