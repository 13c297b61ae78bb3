"""Runs a command against a server of its own: starts nestor-server on a free loopback port, waits until it is healthy,
runs the command, stops the server with SIGTERM. `{server}` in the command is replaced by the server's address.

    with_server.py BIN_FOLDER CHECKPOINT COMMAND...

The exit status is the command's, or 1 if the server did not come up or did not end with 0.
"""

import pathlib
import queue
import re
import signal
import subprocess
import sys
import threading
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

START_SECONDS = 60
STOP_SECONDS = 60


class ServerProcess:
    """A nestor-server process as a context manager: healthy inside the block, gone after it. `address` is host:port,
    `log` the lines it printed so far. Leaving the block normally asks for a clean end and raises without one."""

    def __init__(self, bin_folder, checkpoint, flags=()):
        self.log = []
        self.address = None
        self._command = [str(pathlib.Path(bin_folder) / "nestor-server"), "--model", str(checkpoint),
                         "--address", "127.0.0.1:0", *flags]

    def __enter__(self):
        self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self._lines = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self._wait_until_healthy(time.monotonic() + START_SECONDS)
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, error_type, *_):
        if error_type is not None:
            self.kill()
        elif (status := self.stop()) != 0:
            raise RuntimeError(f"nestor-server ended with {status} after SIGTERM; it said:\n{self.tail()}")

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self):
        """SIGTERM; then as wait."""
        if self.process.poll() is None:
            self.terminate()
        return self.wait()

    def wait(self):
        """The exit status. Kills what does not end in time and reports that as a status below zero."""
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self._reap()

    def kill(self):
        self.process.kill()
        self._reap()

    def _reap(self):
        self.process.wait()
        self._reader.join(5)  # until it has read the last line
        self.process.stdout.close()
        return self.process.returncode

    def tail(self):
        return "\n".join(self.log[-20:])

    def _read(self):
        for line in self.process.stdout:
            self.log.append(line.rstrip("\n"))
            self._lines.put(line)
        self._lines.put(None)

    def _wait_until_healthy(self, deadline):
        while self.address is None:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise RuntimeError(f"nestor-server named no address in {START_SECONDS} s; it said:\n{self.tail()}") from None
            if line is None:
                raise RuntimeError(f"nestor-server ended with {self.process.wait()} while starting; it said:\n{self.tail()}")
            if match := re.search(r"\b127\.0\.0\.1:([1-9]\d*)\b", line):
                self.address = match.group(0)
        with grpc.insecure_channel(self.address) as channel:
            health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), wait_for_ready=True,
                                                               timeout=max(1.0, deadline - time.monotonic()))
        if health.status != health_pb2.HealthCheckResponse.SERVING:
            raise RuntimeError(f"nestor-server listens but is not healthy: {health}")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    bin_folder, checkpoint, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # leaves the block below, so nothing stays
    try:
        with ServerProcess(bin_folder, checkpoint) as server:
            print(*(f"server: {line}" for line in server.log), sep="\n", flush=True)
            status = subprocess.run([part.replace("{server}", server.address) for part in command], check=False).returncode
        print("server: stopped, exit status 0", flush=True)
    except (OSError, RuntimeError, grpc.RpcError) as error:
        sys.exit(f"with_server: {error}")
    sys.exit(status)


if __name__ == "__main__":
    main()
