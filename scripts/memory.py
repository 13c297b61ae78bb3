"""What serving several submodels costs in memory: the resident memory of a server whose submodels have all been used, against
that of a server of the largest alone (cut out with `nestor-checkpoint slice`), after the same requests.

    memory.py BIN_FOLDER CHECKPOINT

Each is the median of several servers, since threads and the allocator make single ones differ by a percent.
Exit status 1 if they differ by more than one percent.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import grpc
import nestor_stubs  # pylint: disable=unused-import  # puts the generated modules on the path
from with_server import ServerProcess

from nestor.v1 import generation_pb2, generation_service_pb2, generation_service_pb2_grpc
from nestor.v1 import model_service_pb2, model_service_pb2_grpc

SERVERS = 3
REQUESTS = 120
CONCURRENCY = 16
TOKENS = 64
LARGEST_DIFFERENCE = 0.01


def resident(pid):
    """{'VmRSS': bytes, 'RssAnon': ..., 'RssFile': ...} of a process."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return {name: 1024 * int(kib) for name, kib in re.findall(r"^(VmRSS|RssAnon|RssFile):\s+(\d+) kB$", status, re.MULTILINE)}


def measure(bin_folder, checkpoint, prompts):
    """Resident memory of a server after requests to each of its submodels in turn; the names of these."""
    with ServerProcess(bin_folder, checkpoint) as server, grpc.insecure_channel(server.address) as channel, \
            concurrent.futures.ThreadPoolExecutor(CONCURRENCY) as pool:
        models = model_service_pb2_grpc.ModelServiceStub(channel)
        generation = generation_service_pb2_grpc.GenerationServiceStub(channel)
        (model,) = models.ListModels(model_service_pb2.ListModelsRequest(), timeout=60).models
        names = [submodel.name for submodel in model.submodels]

        def ask(index):
            request = generation_service_pb2.GenerateRequest(generation=generation_pb2.Generation(
                text=prompts[index % len(prompts)], answer=generation_pb2.AnswerOptions(submodel=names[index % len(names)]),
                sampling=generation_pb2.Sampling(temperature=0), max_output_tokens=TOKENS, ignore_eos=True))
            generation.Generate(request, timeout=60)

        list(pool.map(ask, range(REQUESTS)))
        return resident(server.process.pid), names


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bin_folder, checkpoint = map(pathlib.Path, sys.argv[1:])
    os.environ["MALLOC_ARENA_MAX"] = "1"  # else memory depends on which threads happened to collide
    lines = (checkpoint / "eval.jsonl").read_text(encoding="utf-8").splitlines()
    # Without thinking, since the slice of one submodel is an ordinary checkpoint.
    prompts = [json.loads(line)["prompt"].replace("<think>\n", "<think></think>") for line in lines]
    largest = json.loads((checkpoint / "elastic.json").read_text(encoding="utf-8"))["submodels"][0]["name"]
    with tempfile.TemporaryDirectory() as folder:
        alone = pathlib.Path(folder) / "largest"
        subprocess.run([bin_folder / "nestor-checkpoint", "slice", checkpoint, "--submodel", largest, "-o", alone], check=True)
        medians = []
        for directory in (checkpoint, alone):
            runs = [measure(bin_folder, directory, prompts) for _ in range(SERVERS)]
            medians.append(statistics.median(memory["VmRSS"] for memory, _ in runs))
            names = runs[0][1]
            print(f"{len(names)} served ({', '.join(names)}), {REQUESTS} requests of {TOKENS} tokens:")
            for memory, _ in runs:
                print("  " + ", ".join(f"{name} {bytes_ / 2**20:.2f} MiB" for name, bytes_ in memory.items()))
    ratio = medians[0] / medians[1]
    print(f"ratio of the medians of VmRSS: {ratio:.4f}")
    sys.exit(0 if abs(ratio - 1) <= LARGEST_DIFFERENCE else 1)


if __name__ == "__main__":
    main()
