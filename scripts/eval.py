"""Measures a running server's accuracy and compares it with the reference.

For every row of the reference (thinking submodel, answering submodel, thinking limit, handoff) it asks all questions of
the evaluation set, greedily, and counts the answers that are right. Exit status 1 if a row is further from what is
expected than the tolerance.

    eval.py --server HOST:PORT [--problems 40] [--rows 0.5m/2.5m,*/*/16/recompute]

Expected is the reference's accuracy where the whole set is asked. On a part of the set it is counted over the exact
greedy texts, for the rows that have them (one submodel; no limit or 16 tokens); other rows are measured only.
"""

import argparse
import collections
import concurrent.futures
import fnmatch
import json
import pathlib
import sys

import grpc
import nestor_stubs  # pylint: disable=unused-import  # puts the generated modules on the path

from nestor.v1 import generation_pb2, generation_service_pb2, generation_service_pb2_grpc, plan_pb2

ROOT = pathlib.Path(__file__).resolve().parents[1]
CALL_SECONDS = 120
ROUNDING = 1e-4  # the reference has four digits

Row = collections.namedtuple("Row", "thinking answer limit handoff accuracy thinking_tokens")
Result = collections.namedtuple("Result", "right thinking_tokens exact")  # exact: None where no text is expected


def row_name(row):
    """'0.5m/2.5m/16/recompute'; 'off/2.5m' for answers without thinking."""
    if row.thinking is None:
        return f"off/{row.answer}"
    return f"{row.thinking}/{row.answer}/{'none' if row.limit is None else row.limit}/{row.handoff}"


def read_rows(path, patterns):
    """The rows of a reference file whose names begin as one of the patterns says."""
    rows = [Row(row["thinking"], row["answer"], row.get("max_thinking_tokens"), row.get("handoff", "recompute"),
                row["accuracy"], row.get("mean_thinking_tokens", 0.0))
            for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    return [row for row in rows
            if not patterns or any(fnmatch.fnmatch(row_name(row) + "/", p.rstrip("/") + "/*") for p in patterns)]


def generation_of(problem, row, max_output_tokens):
    generation = generation_pb2.Generation(
        chat=generation_pb2.Chat(messages=[
            generation_pb2.ChatMessage(role=generation_pb2.CHAT_ROLE_USER, content=problem["question"])]),
        answer=generation_pb2.AnswerOptions(submodel=row.answer),
        sampling=generation_pb2.Sampling(temperature=0),
        max_output_tokens=max_output_tokens)
    generation.thinking.enabled = row.thinking is not None
    if row.thinking is not None:
        generation.thinking.submodel = row.thinking
        generation.handoff = plan_pb2.Handoff.Value(f"HANDOFF_{row.handoff.upper()}")
        if row.limit is not None:
            generation.thinking.max_thinking_tokens = row.limit
    return generation


def golden_text(problem, row):
    """The exact text that one submodel alone writes, if the evaluation set has it."""
    if row.thinking != row.answer:
        return None
    return problem.get("greedy", {}).get(f"{row.thinking}/{'none' if row.limit is None else row.limit}")


def generated_text(response):
    """The response as the evaluation set writes it: closing tokens that were forced included, end of sequence too."""
    close = "\n</think>" if response.end.thinking_truncated else "</think>"
    stopped = response.end.finish_reason == generation_pb2.FINISH_REASON_STOP
    return response.thinking_text + close + response.answer_text + ("<|im_end|>" if stopped else "")


def answer_in(text):
    """What counts as the answer: after the last closing of thinking (a transplanted state can make a model close again in
    its answer), up to the end of the turn, trimmed."""
    return text.split("</think>")[-1].split("<|im_end|>")[0].strip()


def ask(stub, problem, row, max_output_tokens):
    request = generation_service_pb2.GenerateRequest(generation=generation_of(problem, row, max_output_tokens))
    response = stub.Generate(request, timeout=CALL_SECONDS)
    golden = golden_text(problem, row)
    return Result(right=answer_in(response.answer_text) == problem["answer"],
                  thinking_tokens=response.end.usage.thinking.generated_tokens,
                  exact=None if golden is None else generated_text(response) == golden)


def expected_accuracy(problems, row, is_whole_set):
    if is_whole_set:
        return row.accuracy
    texts = [golden_text(problem, row) for problem in problems]
    if None in texts:
        return None
    return sum(answer_in(text) == problem["answer"] for text, problem in zip(texts, problems)) / len(problems)


def report(row, results, expected, is_whole_set, tolerance):
    """Prints the row; whether it is as expected, None where nothing is."""
    measured = sum(result.right for result in results) / len(results)
    good = None if expected is None else abs(measured - expected) <= tolerance + ROUNDING
    tokens = sum(result.thinking_tokens for result in results) / len(results)
    exact = [result.exact for result in results if result.exact is not None]
    print(f"{row_name(row):30}{100 * measured:8.2f}"
          + (f" {100 * expected:8.2f} {100 * (measured - expected):+6.2f}" if expected is not None else f" {'':15}")
          + f" {tokens:9.2f}" + (f" {row.thinking_tokens:8.2f}" if is_whole_set else f" {'':8}")
          + (f"{sum(exact):8}/{len(exact)}" if exact else "") + ("  <-- too far" if good is False else ""), flush=True)
    return good


def parse_arguments():
    model = ROOT / "models" / "abacus"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="HOST:PORT")
    parser.add_argument("--eval", type=pathlib.Path, default=model / "eval.jsonl", help="problems, one JSON object a line")
    parser.add_argument("--reference", type=pathlib.Path, default=model / "reference.json", help="rows and their accuracy")
    parser.add_argument("--problems", type=int, help="ask the first N problems only")
    parser.add_argument("--rows", default="", help="comma-separated names or patterns: 0.5m/2.5m/16/recompute, */*/none/*")
    parser.add_argument("--measure-only", action="store_true",
                        help="the problems are not those of the reference: expect nothing of the accuracy")
    parser.add_argument("--concurrency", type=int, default=16, help="calls at the same time")
    parser.add_argument("--tolerance", type=float, default=0.01, help="largest difference in accuracy, 0 to 1")
    parser.add_argument("--max-output-tokens", type=int, default=256)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    lines = arguments.eval.read_text(encoding="utf-8").splitlines()
    all_problems = [json.loads(line) for line in lines if line]
    problems = all_problems[:arguments.problems]
    is_whole_set = len(problems) == len(all_problems) and not arguments.measure_only
    rows = read_rows(arguments.reference, [pattern for pattern in arguments.rows.split(",") if pattern])
    if not rows or not problems:
        sys.exit(f"eval: {len(rows)} rows and {len(problems)} problems: nothing to measure")

    print(f"{len(problems)} problems, {len(rows)} rows, {arguments.concurrency} calls at the same time; accuracy in percent")
    print(f"{'thinking/answer/limit/handoff':30}measured expected   diff  thinking expected  exact texts", flush=True)
    with grpc.insecure_channel(arguments.server) as channel, \
            concurrent.futures.ThreadPoolExecutor(arguments.concurrency) as pool:
        stub = generation_service_pb2_grpc.GenerationServiceStub(channel)
        # All rows at once, so that the server sees different submodels side by side; reported in order.
        calls = [[pool.submit(ask, stub, problem, row, arguments.max_output_tokens) for problem in problems] for row in rows]
        try:
            good = [report(row, [call.result() for call in row_calls],
                           None if arguments.measure_only else expected_accuracy(problems, row, is_whole_set),
                           is_whole_set, arguments.tolerance)
                    for row, row_calls in zip(rows, calls)]
        except grpc.RpcError as error:
            pool.shutdown(cancel_futures=True)
            sys.exit(f"eval: {error.code().name}: {error.details()}")
    compared = [row_good for row_good in good if row_good is not None]
    print(f"{sum(compared)} of {len(compared)} compared rows as expected (tolerance {arguments.tolerance}), "
          f"{len(good) - len(compared)} measured only")
    sys.exit(0 if all(compared) else 1)


if __name__ == "__main__":
    main()
