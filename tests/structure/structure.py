"""Checks the shape of the source tree: dependency direction, file sizes, header guards, tests that really run, and that
docs/ARCHITECTURE.md names an existing test for every promise.

The table of allowed dependencies and the table of promises are those of docs/ARCHITECTURE.md: one place for the reader
and for this check.

    structure.py ROOT      prints one line for each violation; exit status 1 if there is any
"""

import os
import re
import sys

ARCHITECTURE = "docs/ARCHITECTURE.md"
LINES_MAX = 600
SOURCE_ENDINGS = (".cc", ".h", ".h.in", ".cu", ".cuh", ".proto", ".py", ".sh", ".cmake")
CPP_ENDINGS = (".cc", ".h", ".cu", ".cuh")
SKIPPED_FOLDERS = {"build", "models", "data", "__pycache__"}  # and hidden ones: not sources of ours

# Libraries that stop at the service boundary: neither the engine nor its tests know them.
SERVICE_LIBRARIES = ("grpc/", "grpc++/", "grpcpp/", "google/protobuf/", "google/rpc/", "nestor/v1/", "prometheus/")

# Generated from proto/, so there is no such file in the tree.
GENERATED_PREFIXES = {"nestor/v1/": "proto", "google/rpc/": "proto"}

# What Nestor promises its users (each word has to appear in a row of the table of promises).
PROMISES = (
    "exactly one terminal status",
    "cancelling",
    "queue is bounded",
    "bad input",
    "sigterm",
    "checkpoint fails the start",
    "utf-8",
    "silently ignored",
    "batch invariance",
    "thinking limit",
    "memory",
)


class Tree:
    """The files of ours below a root folder, by path relative to it."""

    def __init__(self, root):
        self.root = root
        self.files = {}
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("."))
            for name in sorted(names):
                path = os.path.relpath(os.path.join(folder, name), root)
                if path.endswith(SOURCE_ENDINGS) or name in ("CMakeLists.txt", "ARCHITECTURE.md"):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        self.files[path] = file.read()

    def sources(self, endings):
        return [(path, text) for path, text in self.files.items() if path.endswith(endings)]


def table_rows(text, heading):
    """The cells of the first Markdown table below a heading, without its two header lines."""
    match = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    if not match:
        return []
    lines = [line for line in match.group(1).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def allowed_dependencies(tree):
    """{row: rows that it may include} from the table below 'Dependencies'. A name that is no row stands for all rows
    below it."""
    rows = table_rows(tree.files.get(ARCHITECTURE, ""), "Dependencies")
    named = {row[0].strip("`"): re.findall(r"`([^`]+)`", row[1]) for row in rows}

    def rows_of(name):
        return [name] if name in named else [row for row in named if row.startswith(name + "/")] or [name]

    return {row: [other for name in names for other in rows_of(name)] for row, names in named.items()}


def row_of(path, table):
    """The most specific row of the table that the path falls under, or None. A row is a folder or a file."""
    rows = [row for row in table if path == row or path.startswith(row + "/")]
    return max(rows, key=len) if rows else None


def check_dependencies(tree):
    table = allowed_dependencies(tree)
    if not table:
        yield f"{ARCHITECTURE}: found no table below the heading 'Dependencies'"
        return
    top_folders = {row.split("/")[0] for row in table} | {"tests"}
    for path, text in tree.sources(CPP_ENDINGS):
        own = row_of(path, table)
        if own is None and not path.startswith("tests/"):
            yield f"{path}: is under no row of the table in {ARCHITECTURE}"
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if not match:
                continue
            quoted, include = match.group(1) == '"', match.group(2)
            where = f"{path}:{number}: includes {include}"
            if path.startswith(("engine/", "tests/engine/")) and include.startswith(SERVICE_LIBRARIES):
                yield f"{where}: the engine knows nothing of gRPC, protobuf and Prometheus"
                continue
            generated = next((to for prefix, to in GENERATED_PREFIXES.items() if include.startswith(prefix)), None)
            if generated is None and include.split("/")[0] not in top_folders:
                if quoted and "/" not in include:
                    yield f"{where}: name the path from the root of the tree"
                continue
            if generated is None and include not in tree.files and include + ".in" not in tree.files:
                yield f"{where}: there is no such file"
                continue
            if path.startswith("tests/"):
                if path.startswith("tests/engine/") and not include.startswith(("engine/", "tests/")):
                    yield f"{where}: tests of the engine use the engine alone"
                continue
            other = generated or row_of(include, table)
            if other != own and other not in table[own]:
                yield f"{where}: {own} may use {', '.join(table[own]) or 'nothing'}"


def check_table_has_no_cycle(tree):
    """The direction is one way: following the table never leads back."""
    table = allowed_dependencies(tree)
    done, active = set(), []

    def visit(folder):
        if folder in active:
            return active[active.index(folder):] + [folder]
        if folder in done or folder not in table:
            return None
        active.append(folder)
        for other in table[folder]:
            if cycle := visit(other):
                return cycle
        done.add(active.pop())
        return None

    for folder, others in table.items():
        for other in others:
            if other not in table:
                yield f"{ARCHITECTURE}: row {folder} names {other}, which has no row"
        if cycle := visit(folder):
            yield f"{ARCHITECTURE}: the dependencies go round in a circle: {' -> '.join(cycle)}"
            return


def check_no_cuda_ifdef(tree):
    for path, text in tree.sources(CPP_ENDINGS):
        for number, line in enumerate(text.splitlines(), 1):
            if re.match(r"\s*#\s*(if|ifdef|ifndef|elif)\b.*(CUDA|HIP|GPU)", line):
                yield f"{path}:{number}: a backend is chosen by CMake, which picks the source file, not by #ifdef"


def check_tests_are_registered(tree):
    registered = set(re.findall(r"^\s*nestor_test\((\S+)", tree.files.get("tests/CMakeLists.txt", ""), re.MULTILINE))
    for path, text in tree.sources(CPP_ENDINGS):
        if not path.startswith("tests/"):
            if path.endswith("_test.cc"):
                yield f"{path}: tests live below tests/"
            continue
        if path.endswith("_test.cc") and os.path.dirname(path)[len("tests/"):] not in registered:
            yield f"{path}: tests/CMakeLists.txt has no nestor_test() for its folder, so it never runs"
        if not path.endswith("_test.cc") and re.search(r"^TEST(_F|_P)?\(", text, re.MULTILINE):
            yield f"{path}: has tests but is not named *_test.cc"
        for name in re.findall(r"^\s*(?://\s*)(TEST(?:_F|_P)?\([^)]*\))", text, re.MULTILINE):
            yield f"{path}: {name} is commented out; delete it or run it"
        for name in re.findall(r"^TEST(?:_F|_P)?\([^)]*\bDISABLED_\w*", text, re.MULTILINE):
            yield f"{path}: {name}) is disabled; delete it or run it"


def check_sizes(tree):
    for path, text in tree.sources(SOURCE_ENDINGS):
        if (lines := text.count("\n")) > LINES_MAX:
            yield f"{path}: {lines} lines, at most {LINES_MAX}: split it"


def check_header_guards(tree):
    for path, text in tree.sources((".h", ".cuh")):
        guard = "NESTOR_" + re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"
        if not re.search(rf"^#ifndef {guard}\n#define {guard}\n", text, re.MULTILINE):
            yield f"{path}: expected the header guard {guard}"


def test_exists(tree, reference):
    """reference: 'path:Suite.Name' of GoogleTest, 'path:Class.method' of unittest."""
    match = re.fullmatch(r"([^:]+):(\w+)\.(\w+)", reference)
    if not match or match.group(1) not in tree.files:
        return False
    path, suite, name = match.groups()
    if path.endswith(".py"):
        return bool(re.search(rf"^class {suite}\b.*?^    def {name}\(", tree.files[path], re.MULTILINE | re.DOTALL))
    return bool(re.search(rf"^TEST(_F|_P)?\(\s*{suite}\s*,\s*{name}\s*\)", tree.files[path], re.MULTILINE))


def check_promises(tree):
    rows = table_rows(tree.files.get(ARCHITECTURE, ""), "Promises")
    for promise in PROMISES:
        if not any(promise in row[0].lower() for row in rows):
            yield f"{ARCHITECTURE}: no row below 'Promises' speaks of '{promise}'"
    for row in rows:
        references = re.findall(r"`([^`]+)`", row[1])
        if not references:
            yield f"{ARCHITECTURE}: no test named for: {row[0]}"
        for reference in references:
            if not test_exists(tree, reference):
                yield f"{ARCHITECTURE}: there is no test {reference}"


CHECKS = (
    check_dependencies,
    check_table_has_no_cycle,
    check_no_cuda_ifdef,
    check_tests_are_registered,
    check_sizes,
    check_header_guards,
    check_promises,
)


def violations(root):
    tree = Tree(root)
    return [violation for check in CHECKS for violation in check(tree)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = violations(sys.argv[1])
    print("\n".join(found) or "structure: nothing found")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
