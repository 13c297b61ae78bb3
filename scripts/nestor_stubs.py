"""Python stubs of proto/nestor/v1, generated when they are asked for, into build/python. Importing this module makes
`from nestor.v1 import generation_pb2` and the like work; they are generated again when a .proto file has changed."""

import fcntl
import importlib.resources
import pathlib
import sys

import grpc_tools
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROTO = ROOT / "proto"
OUT = ROOT / "build" / "python"


def generate():
    files = sorted(PROTO.glob("nestor/**/*.proto"))
    stamp = OUT / "stamp"
    wanted = "".join(f"{path.relative_to(PROTO)}\n{path.read_text(encoding='utf-8')}" for path in files)
    OUT.mkdir(parents=True, exist_ok=True)
    with open(OUT / "lock", "w", encoding="utf-8") as lock:  # tests may start at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return
        well_known = str(importlib.resources.files(grpc_tools) / "_proto")
        status = protoc.main(["protoc", f"-I{PROTO}", f"-I{well_known}", f"--python_out={OUT}", f"--grpc_python_out={OUT}",
                              *map(str, files)])
        if status != 0:
            raise RuntimeError(f"protoc ended with {status}")
        stamp.write_text(wanted, encoding="utf-8")


generate()
sys.path.insert(0, str(OUT))
