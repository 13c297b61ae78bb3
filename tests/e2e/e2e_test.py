"""The real binaries, talked to as users do: plain Python gRPC, reflection, grpcurl, the health service, signals.

Environment: as harness.py. Everything is on loopback, on ports the system picks.
"""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import threading
import time
import unittest

import grpc

from harness import BIN, CALL_SECONDS, MODEL, ROOT, Stubs

from with_server import ServerProcess
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status
from nestor.v1 import generation_pb2, generation_service_pb2, model_service_pb2, plan_pb2

GRPCURL = pathlib.Path(sys.executable).parent / "grpcurl"
SERVICES = {"nestor.v1.GenerationService", "nestor.v1.ModelService", "grpc.health.v1.Health"}

QUESTION = "Sort 17 4 79 50 49 in ascending order."
ANSWER = "4 17 49 50 79"


def question(text=QUESTION, thinking="0.5m", answer="2.5m", **fields):
    """A greedy generation that thinks with one submodel and answers with another."""
    return generation_pb2.Generation(
        chat=generation_pb2.Chat(messages=[
            generation_pb2.ChatMessage(role=generation_pb2.CHAT_ROLE_USER, content=text)]),
        thinking=generation_pb2.ThinkingOptions(submodel=thinking),
        answer=generation_pb2.AnswerOptions(submodel=answer),
        sampling=generation_pb2.Sampling(temperature=0), **fields)


def endless(max_output_tokens):
    """A generation that takes exactly so many tokens."""
    return question(ignore_eos=True, max_output_tokens=max_output_tokens)


def details_of(error):
    """{type: detail} of the google.rpc details of an error."""
    details = {}
    for detail in rpc_status.from_call(error).details:
        for kind in (error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo):
            if detail.Is(kind.DESCRIPTOR):
                details[kind] = kind()
                detail.Unpack(details[kind])
    return details


class ServerTest(unittest.TestCase):
    """One server for all tests of the class; it has to end with 0 after SIGTERM."""

    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(BIN, MODEL, cls.flags))
        cls.stubs = Stubs(cls.server.address)
        cls.addClassCleanup(cls.stubs.channel.close)


class ServiceTest(ServerTest):
    def details_of(self, generation):
        with self.assertRaises(grpc.RpcError) as raised:
            self.stubs.generate(generation)
        return raised.exception.code(), details_of(raised.exception)

    def test_start_line_says_what_is_served(self):
        line = " ".join(self.server.log)
        for part in (self.server.address, "cpu", "abacus", "2.5m", "1.2m", "0.5m"):
            self.assertIn(part, line)

    def test_generate_thinks_small_and_answers_large(self):
        response = self.stubs.generate(question())
        self.assertEqual(response.answer_text.strip(), ANSWER)
        self.assertNotIn("think>", response.thinking_text + response.answer_text)
        self.assertTrue(response.thinking_text)
        self.assertEqual(response.start.plan.thinking_submodel, "0.5m")
        self.assertEqual(response.start.plan.answer_submodel, "2.5m")
        self.assertTrue(response.start.plan.reason)
        self.assertEqual(response.end.finish_reason, generation_pb2.FINISH_REASON_STOP)
        usage = response.end.usage
        self.assertEqual(usage.thinking.submodel, "0.5m")
        self.assertEqual(usage.answer.submodel, "2.5m")
        self.assertEqual({use.submodel for use in usage.submodels}, {"0.5m", "2.5m"})
        self.assertGreater(usage.prompt_tokens, 0)
        self.assertGreater(response.end.timings.total.ToNanoseconds(), 0)

    def test_stream_is_the_unary_answer_in_pieces(self):
        unary = self.stubs.generate(question())
        events = [response.WhichOneof("event") for response in self.stubs.stream(question())]
        self.assertEqual(events[0], "start")
        self.assertEqual(events[-1], "end")
        self.assertEqual(set(events[1:-1]), {"delta"})
        deltas = [response.delta for response in self.stubs.stream(question()) if response.HasField("delta")]
        phases = [delta.phase for delta in deltas]
        self.assertEqual(phases, sorted(phases), "thinking comes before the answer")
        for phase, text in ((plan_pb2.PHASE_THINKING, unary.thinking_text), (plan_pb2.PHASE_ANSWER, unary.answer_text)):
            self.assertEqual("".join(delta.text for delta in deltas if delta.phase == phase), text)

    def test_thinking_limit_is_exact(self):
        for limit in (0, 1, 5):
            generation = question()
            generation.thinking.max_thinking_tokens = limit
            response = self.stubs.generate(generation)
            self.assertEqual(response.end.usage.thinking.generated_tokens, limit)
            self.assertTrue(response.end.thinking_truncated)
            self.assertGreater(response.end.usage.answer.generated_tokens, 0)

    def test_a_request_gives_the_same_in_company_as_alone(self):
        questions = [json.loads(line)["question"] for line in (MODEL / "eval.jsonl").read_text().splitlines()[:16]]
        submodels = ("2.5m", "1.2m", "0.5m")
        generations = []
        for index, text in enumerate(questions):
            generation = question(text, submodels[index % 3], submodels[index // 3 % 3],
                                  handoff=1 + index % 2, max_output_tokens=40 + index, return_token_ids=True)
            generation.sampling.temperature = 0.3 * (index % 4)
            generation.sampling.seed = index
            generation.thinking.max_thinking_tokens = 4 * index
            generations.append(generation)
        alone = [self.stubs.generate(generation) for generation in generations]
        for _ in range(3):
            with concurrent.futures.ThreadPoolExecutor(len(generations)) as pool:
                together = list(pool.map(self.stubs.generate, generations))
            for one, other in zip(alone, together):
                for field in ("thinking_text", "answer_text", "thinking_tokens", "answer_tokens"):
                    self.assertEqual(getattr(one, field), getattr(other, field))

    def test_models(self):
        (model,) = self.stubs.models.ListModels(model_service_pb2.ListModelsRequest(), timeout=CALL_SECONDS).models
        self.assertEqual([submodel.name for submodel in model.submodels], ["2.5m", "1.2m", "0.5m"])
        largest = model.submodels[0]
        self.assertEqual((largest.total_parameters, largest.active_parameters), (2473280, 1551680))
        self.assertEqual(len(model.quality), len(json.loads((MODEL / "reference.json").read_text())["rows"]))
        request = model_service_pb2.GetModelRequest(name=model.name)
        self.assertEqual(self.stubs.models.GetModel(request, timeout=CALL_SECONDS).model, model)
        with self.assertRaises(grpc.RpcError) as raised:
            self.stubs.models.GetModel(model_service_pb2.GetModelRequest(name="other"), timeout=CALL_SECONDS)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)

    def test_budget_picks_the_largest_that_fits(self):
        generation = question(thinking=None, answer=None)
        generation.budget.max_total_parameters = 2_000_000
        plan = self.stubs.generate(generation).start.plan
        self.assertEqual((plan.thinking_submodel, plan.answer_submodel), ("1.2m", "1.2m"))

    def test_bad_input_names_the_field(self):
        code, details = self.details_of(question(answer="7b"))
        self.assertEqual(code, grpc.StatusCode.INVALID_ARGUMENT)
        (violation,) = details[error_details_pb2.BadRequest].field_violations
        self.assertEqual(violation.field, "generation.answer.submodel")
        self.assertEqual(details[error_details_pb2.ErrorInfo].domain, "nestor")

    def test_unserved_budget_is_refused(self):
        generation = question(thinking=None, answer=None)
        generation.budget.latency.max_end_to_end.FromSeconds(1)
        code, details = self.details_of(generation)
        self.assertEqual(code, grpc.StatusCode.UNIMPLEMENTED)
        self.assertEqual(details[error_details_pb2.ErrorInfo].reason, "LATENCY_BUDGET_UNSUPPORTED")

    def test_health(self):
        for service in ("", "nestor.v1.GenerationService"):
            request = health_pb2.HealthCheckRequest(service=service)
            self.assertEqual(self.stubs.health.Check(request, timeout=CALL_SECONDS).status,
                             health_pb2.HealthCheckResponse.SERVING)
            watch = self.stubs.health.Watch(request, timeout=CALL_SECONDS)
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)
            watch.cancel()

    def test_reflection_lists_the_services(self):
        stub = reflection_pb2_grpc.ServerReflectionStub(self.stubs.channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (response,) = stub.ServerReflectionInfo(iter([request]), timeout=CALL_SECONDS)
        self.assertLessEqual(SERVICES, {service.name for service in response.list_services_response.service})

    def grpcurl(self, *arguments):
        command = [str(GRPCURL), "-plaintext", *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=CALL_SECONDS, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_grpcurl_by_reflection(self):
        if not GRPCURL.exists():
            self.skipTest(f"{GRPCURL} is not installed")
        self.assertLessEqual(SERVICES, set(self.grpcurl(self.server.address, "list").split()))
        request = {"generation": {"chat": {"messages": [{"role": "CHAT_ROLE_USER", "content": QUESTION}]},
                                  "sampling": {"temperature": 0}}}
        answer = json.loads(self.grpcurl("-d", json.dumps(request), self.server.address,
                                         "nestor.v1.GenerationService/Generate"))
        self.assertEqual(answer["answer_text"].strip(), ANSWER)
        health = json.loads(self.grpcurl(self.server.address, "grpc.health.v1.Health/Check"))
        self.assertEqual(health, {"status": "SERVING"})

    def test_command_line(self):
        command = [str(BIN / "nestor"), "generate", "--server", self.server.address, "--thinking-submodel", "0.5m",
                   "--answer-submodel", "2.5m", "--temperature", "0", QUESTION]
        result = subprocess.run(command, capture_output=True, text=True, timeout=CALL_SECONDS, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        events = [json.loads(line) for line in result.stdout.splitlines()]  # not a terminal: JSON lines
        self.assertEqual(ANSWER, "".join(event["delta"].get("text", "") for event in events
                                         if event.get("delta", {}).get("phase") == "PHASE_ANSWER").strip())

    def test_accuracy_is_that_of_the_reference(self):
        rows = "2.5m/2.5m/16/recompute,1.2m/1.2m/none/recompute,0.5m/0.5m/none/recompute"
        command = [sys.executable, "-B", str(ROOT / "scripts" / "eval.py"), "--server", self.server.address,
                   "--problems", "40", "--rows", rows]
        result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("3 of 3 compared rows as expected", result.stdout)


class BusyTest(ServerTest):
    """A server that runs one request and lets two wait."""

    flags = ("--sequences-max", "1", "--queue-max", "2")

    def test_full_queue_refuses_at_once_and_says_when_to_come_back(self):
        streams = [self.stubs.stream(endless(max_output_tokens=400)) for _ in range(8)]
        try:
            refused = []
            for stream in streams[::-1]:
                try:
                    while next(stream).WhichOneof("event") == "start":
                        pass
                    break  # it runs; those before it run or wait
                except grpc.RpcError as error:
                    refused.append(error)
            self.assertGreater(len(refused), 0)
            for error in refused:
                self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                details = details_of(error)
                self.assertEqual(details[error_details_pb2.ErrorInfo].reason, "QUEUE_FULL")
                self.assertGreater(details[error_details_pb2.RetryInfo].retry_delay.ToNanoseconds(), 0)
        finally:
            for stream in streams:
                stream.cancel()

    def test_cancelling_makes_room(self):
        # Cancels take a moment to arrive; without them the streams would take far longer than this.
        deadline = time.monotonic() + 10

        def when_there_is_room(call):
            while True:
                try:
                    return call()
                except grpc.RpcError as error:
                    self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                    self.assertLess(time.monotonic(), deadline, "cancelled requests still hold the queue")
                    time.sleep(0.05)

        def start_and_cancel():
            stream = self.stubs.stream(endless(max_output_tokens=3000))
            self.assertEqual(next(stream).WhichOneof("event"), "start")
            stream.cancel()

        for _ in range(20):
            when_there_is_room(start_and_cancel)
        answer = when_there_is_room(lambda: self.stubs.generate(question()).answer_text)
        self.assertEqual(answer.strip(), ANSWER)


class DrainTest(unittest.TestCase):
    def test_sigterm_lets_a_stream_finish(self):
        server = ServerProcess(BIN, MODEL, ("--drain-seconds", str(CALL_SECONDS)))
        with server:
            stubs = Stubs(server.address)
            self.addCleanup(stubs.channel.close)
            watch = stubs.health.Watch(health_pb2.HealthCheckRequest(), timeout=CALL_SECONDS)
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.SERVING)
            stream = stubs.stream(endless(max_output_tokens=1000))
            self.assertEqual(next(stream).WhichOneof("event"), "start")
            self.assertEqual(next(stream).WhichOneof("event"), "delta")

            # The rest of the stream is read beside the test, which looks at health meanwhile.
            rest, stream_error = [], []
            ended = threading.Event()

            def read():
                try:
                    rest.extend(response.WhichOneof("event") for response in stream)
                except grpc.RpcError as error:
                    stream_error.append(error)
                ended.set()

            reader = threading.Thread(target=read, daemon=True)
            server.terminate()
            reader.start()
            self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.NOT_SERVING)
            self.assertFalse(ended.is_set(), "health turned only after the stream had ended")
            with self.assertRaises(grpc.RpcError) as raised:
                stubs.generate(question())
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)
            reader.join(CALL_SECONDS)
            self.assertEqual(stream_error, [])
            self.assertEqual(rest[-1], "end")
            watch.cancel()
            self.assertEqual(server.wait(), 0, server.tail())  # a second signal would end it at once


    def test_when_the_drain_time_is_over_clients_hear_why(self):
        with ServerProcess(BIN, MODEL, ("--drain-seconds", "0.2")) as server:
            stubs = Stubs(server.address)
            self.addCleanup(stubs.channel.close)
            stream = stubs.stream(endless(max_output_tokens=4000))
            self.assertEqual(next(stream).WhichOneof("event"), "start")
            server.terminate()
            with self.assertRaises(grpc.RpcError) as raised:
                for _ in stream:
                    pass
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)
            self.assertIn("the server stops", raised.exception.details())
            self.assertEqual(server.wait(), 0, server.tail())

    def test_the_log_tells_deadlines_from_cancels(self):
        with ServerProcess(BIN, MODEL) as server:
            stubs = Stubs(server.address)
            self.addCleanup(stubs.channel.close)
            late = generation_service_pb2.GenerateRequest(generation=endless(4000))
            late.generation.request_id = "late"
            with self.assertRaises(grpc.RpcError) as raised:
                stubs.generation.Generate(late, timeout=0.5)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
            left = endless(4000)
            left.request_id = "left"
            stream = stubs.stream(left)
            next(stream)
            stream.cancel()
            server.stop()
            log = "\n".join(server.log)
            self.assertIn("request late: DEADLINE_EXCEEDED", log)
            self.assertIn("request left: CANCELLED", log)


class StartTest(unittest.TestCase):
    def run_server(self, *arguments):
        return subprocess.run([str(BIN / "nestor-server"), *arguments], capture_output=True, text=True,
                              timeout=CALL_SECONDS, check=False)

    def test_readme_has_the_flags_of_help(self):
        result = self.run_server("--help")
        self.assertEqual(result.returncode, 0, result.stderr)
        flags = set(re.findall(r"^ +--([a-z-]+)", result.stdout, re.MULTILINE)) - {"help"}
        rows = re.findall(r"^\| `--([a-z-]+)` \| `NESTOR_([A-Z_]+)` \|", (ROOT / "README.md").read_text(), re.MULTILINE)
        self.assertIn("model", flags)
        self.assertEqual(flags, {flag for flag, _ in rows})
        for flag, variable in rows:
            self.assertEqual(variable, flag.upper().replace("-", "_"))

    def test_wrong_flags_are_refused(self):
        for flag, value in (("--adress", "127.0.0.1:0"), ("--address", "127.0.0.1:116538"), ("--rows-max", "2000000000")):
            result = self.run_server("--model", str(MODEL), flag, value)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(flag, result.stderr)

    def test_missing_checkpoint_ends_the_start(self):
        result = self.run_server("--model", str(MODEL / "nowhere"), "--address", "127.0.0.1:0")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("nowhere", result.stderr)


if __name__ == "__main__":
    unittest.main()
