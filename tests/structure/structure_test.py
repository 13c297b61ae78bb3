"""The structure check finds nothing in Nestor, and finds every fault planted in a small tree: a check that never fires
would look just as green."""

import os
import pathlib
import tempfile
import unittest

import structure

ROOT = pathlib.Path(__file__).resolve().parents[2]

PROMISES = "".join(f"| {promise} | `tests/server/server_test.cc:Server.Works` |\n" for promise in structure.PROMISES)

GOOD_TREE = {
    "docs/ARCHITECTURE.md": f"""# Architecture

## Dependencies

| folder | may include |
|---|---|
| `engine/base` | |
| `engine/serve` | `engine/base` |
| `proto` | |
| `server` | `engine`, `proto` |
| `client` | `proto` |
| `client/main.cc` | `client`, `server` |

## Promises

| promise | test |
|---|---|
{PROMISES}""",
    "engine/base/file.h": "#ifndef NESTOR_ENGINE_BASE_FILE_H_\n#define NESTOR_ENGINE_BASE_FILE_H_\n#endif\n",
    "engine/serve/loop.cc": '#include <vector>\n#include "absl/status/status.h"\n#include "engine/base/file.h"\n',
    "server/service.cc": '#include <grpcpp/grpcpp.h>\n#include "nestor/v1/service.pb.h"\n#include "engine/base/file.h"\n',
    "server/service.h": "#ifndef NESTOR_SERVER_SERVICE_H_\n#define NESTOR_SERVER_SERVICE_H_\n#endif\n",
    "client/main.cc": '#include "server/service.h"\n',
    "tests/CMakeLists.txt": "nestor_test(server DEPS nestor_server)\n",
    "tests/server/server_test.cc": "TEST(Server, Works) {}\n",
}


class StructureTest(unittest.TestCase):
    def found(self, changes):
        """The violations in the good tree after some files were replaced."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in (GOOD_TREE | changes).items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return structure.violations(root)

    def assert_found(self, changes, expected):
        found = self.found(changes)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_nestor_itself(self):
        self.assertEqual(structure.violations(str(ROOT)), [])

    def test_good_tree(self):
        self.assertEqual(self.found({}), [])

    def test_include_against_the_direction(self):
        self.assert_found({"engine/base/file.cc": '#include "server/service.h"\n'}, "engine/base may use nothing")
        self.assert_found({"server/other.cc": '#include "client/main.cc"\n'}, "server may use engine/base, engine/serve")

    def test_a_file_can_have_a_row_of_its_own(self):
        self.assert_found({"client/client.cc": '#include "server/service.h"\n'}, "client may use proto")

    def test_service_libraries_in_the_engine(self):
        for header in ("<grpcpp/grpcpp.h>", '"google/protobuf/message.h"', "<prometheus/counter.h>", '"nestor/v1/a.pb.h"'):
            self.assert_found({"engine/serve/bad.cc": f"#include {header}\n"}, "knows nothing of gRPC")
            self.assert_found({"tests/server/server_test.cc": "TEST(Server, Works) {}\n",
                               "tests/engine/fake.cc": f"#include {header}\n"}, "knows nothing of gRPC")

    def test_engine_tests_stay_in_the_engine(self):
        self.assert_found({"tests/engine/fake.cc": '#include "server/service.h"\n'}, "use the engine alone")

    def test_include_of_a_missing_file(self):
        self.assert_found({"server/other.cc": '#include "engine/base/gone.h"\n'}, "no such file")

    def test_include_without_a_path(self):
        self.assert_found({"server/other.cc": '#include "service.h"\n'}, "name the path")

    def test_folder_without_a_row(self):
        self.assert_found({"helpers/a.cc": "\n"}, "under no row")

    def test_table_that_goes_round(self):
        text = GOOD_TREE["docs/ARCHITECTURE.md"].replace("| `proto` | |", "| `proto` | `client` |")
        self.assert_found({"docs/ARCHITECTURE.md": text}, "in a circle: proto -> client -> proto")

    def test_table_that_names_a_folder_without_a_row(self):
        text = GOOD_TREE["docs/ARCHITECTURE.md"].replace("| `proto` | |", "| `proto` | `cloud` |")
        self.assert_found({"docs/ARCHITECTURE.md": text}, "names cloud, which has no row")

    def test_cuda_ifdef(self):
        self.assert_found({"engine/serve/bad.cc": "#ifdef NESTOR_CUDA\n#endif\n"}, "not by #ifdef")
        self.assert_found({"engine/serve/bad.cc": "#if defined(__CUDACC__)\n#endif\n"}, "not by #ifdef")

    def test_test_that_never_runs(self):
        self.assert_found({"tests/client/client_test.cc": "TEST(Client, Works) {}\n"}, "never runs")
        self.assert_found({"server/service_test.cc": "\n"}, "tests live below tests/")
        self.assert_found({"tests/server/more.cc": "TEST(Server, More) {}\n"}, "not named *_test.cc")
        text = "TEST(Server, Works) {}\n"
        self.assert_found({"tests/server/server_test.cc": text + "// TEST(Server, Slow) {}\n"}, "commented out")
        self.assert_found({"tests/server/server_test.cc": text + "TEST(Server, DISABLED_Slow) {}\n"}, "is disabled")

    def test_long_file(self):
        self.assert_found({"server/long.cc": "\n" * 601}, "601 lines")

    def test_header_guard(self):
        self.assert_found({"server/other.h": "#ifndef OTHER_H\n#define OTHER_H\n#endif\n"}, "NESTOR_SERVER_OTHER_H_")

    def test_promise_without_a_row(self):
        text = GOOD_TREE["docs/ARCHITECTURE.md"].replace("| sigterm |", "| signals |")
        self.assert_found({"docs/ARCHITECTURE.md": text}, "speaks of 'sigterm'")

    def test_promise_without_a_test(self):
        text = GOOD_TREE["docs/ARCHITECTURE.md"] + "| another | none |\n"
        self.assert_found({"docs/ARCHITECTURE.md": text}, "no test named for: another")

    def test_promise_with_a_test_that_is_gone(self):
        for reference in ("tests/server/server_test.cc:Server.Gone", "tests/gone_test.cc:Server.Works", "Server.Works"):
            text = GOOD_TREE["docs/ARCHITECTURE.md"] + f"| another | `{reference}` |\n"
            self.assert_found({"docs/ARCHITECTURE.md": text}, f"there is no test {reference}")


if __name__ == "__main__":
    unittest.main()
