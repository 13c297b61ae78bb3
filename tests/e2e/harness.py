"""What the tests of the real binaries share: where these lie, and a client of a server.

Environment: BIN_FOLDER is the folder of the binaries. Importing this puts scripts/ and the generated modules on the path.
"""

import os
import pathlib
import sys

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import nestor_stubs  # noqa: E402,F401  # puts the generated modules on the path

from grpc_health.v1 import health_pb2_grpc  # noqa: E402
from nestor.v1 import generation_service_pb2, generation_service_pb2_grpc  # noqa: E402
from nestor.v1 import model_service_pb2_grpc  # noqa: E402

BIN = pathlib.Path(os.environ.get("BIN_FOLDER", ROOT / "build" / "release" / "bin"))
MODEL = ROOT / "models" / "abacus"
CALL_SECONDS = 120  # a sanitizer may make everything twenty times slower


class Stubs:
    """One channel and the stubs on it."""

    def __init__(self, address):
        self.channel = grpc.insecure_channel(address)
        self.generation = generation_service_pb2_grpc.GenerationServiceStub(self.channel)
        self.models = model_service_pb2_grpc.ModelServiceStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def generate(self, generation):
        request = generation_service_pb2.GenerateRequest(generation=generation)
        return self.generation.Generate(request, timeout=CALL_SECONDS)

    def stream(self, generation):
        request = generation_service_pb2.GenerateStreamRequest(generation=generation)
        return self.generation.GenerateStream(request, timeout=CALL_SECONDS)
