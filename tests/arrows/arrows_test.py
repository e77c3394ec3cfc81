#!/usr/bin/env python3
"""Each rule of arrows.py finds its violation, and lets the lawful neighbour through."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import arrows  # noqa: E402

# (name, {file: text}, part of the one expected violation or None)
CASES = [
    ("core sees base", {"src/core/a.h": '#include "base/result.h"\n'}, None),
    ("core sees itself", {"src/core/a.h": '#include "core/b.h"\n'}, None),
    ("core must not see ports", {"src/core/a.h": '#include "ports/store.h"\n'},
     "src/core/a.h:1: core must not see ports"),
    ("angle brackets are no way round", {"src/core/a.h": "#include <ports/store.h>\n"},
     "core must not see ports"),
    ("spaces are no way round", {"src/core/a.h": '  #  include  "ports/store.h"\n'},
     "core must not see ports"),
    ("dots are no way round", {"src/core/a.h": '#include "../ports/store.h"\n'}, 'leaves its layer'),
    ("base sees nothing", {"src/base/a.h": '#include "core/state.h"\n'}, "base must not see core"),
    ("codec must not see net", {"src/codec/a.cpp": '#include "net/http.h"\n'}, "codec must not see net"),
    ("server must not see adapters", {"src/server/a.cpp": '#include "adapters/sqlite_store.h"\n'},
     "server must not see adapters"),
    ("agent must not see server", {"src/agent/a.cpp": '#include "server/core_loop.h"\n'},
     "agent must not see server"),
    ("cli must not see adapters", {"src/cli/a.cpp": '#include "adapters/sqlite_store.h"\n'},
     "cli must not see adapters"),
    ("the composition names adapters", {"src/composition.cpp": '#include "adapters/sqlite_store.h"\n'},
     None),
    ("main sees the cli and the composition",
     {"src/main.cpp": '#include "cli/app.h"\n#include "composition.h"\n'}, None),
    ("nobody sees the composition", {"src/cli/a.cpp": '#include "../composition.h"\n'},
     "leaves its layer"),
    ("the program knows no fakes", {"src/main.cpp": '#include "fakes/fake_store.h"\n'},
     "(root) must not see fakes"),
    ("a new folder needs its arrows", {"src/extra/a.h": ""}, "src/extra is no known layer"),
    ("Boost in net", {"src/net/a.cpp": "#include <boost/asio.hpp>\n"}, None),
    ("Boost.JSON in its one file", {"src/codec/json.cpp": "#include <boost/json/src.hpp>\n"}, None),
    ("Boost in another file of codec", {"src/codec/record.cpp": "#include <boost/json.hpp>\n"},
     "<boost/json.hpp> is allowed only in"),
    ("Boost by way of a header of net",
     {"src/net/http.h": "#include <boost/asio.hpp>\n",
      "src/server/a.cpp": '#include "net/http.h"\n'},
     "src/server/a.cpp: gets Boost by server/a.cpp -> net/http.h"),
    ("Boost behind a header of net",
     {"src/net/asio.h": "#include <boost/asio.hpp>\n", "src/net/http.h": "#include <string>\n",
      "src/net/http.cpp": '#include "net/asio.h"\n', "src/server/a.cpp": '#include "net/http.h"\n'},
     None),
    ("SQLite in server", {"src/server/a.cpp": "#include <sqlite3.h>\n"}, "<sqlite3.h> is allowed only in"),
    ("a test library in src", {"src/core/a.cpp": "#include <gtest/gtest.h>\n"},
     "<gtest/gtest.h> is allowed only in tests"),
    ("a thread in core", {"src/core/a.cpp": "#include <thread>\n"}, "core is pure: no thread"),
    ("a clock in core", {"src/core/a.cpp": "#include <chrono>\n"}, "core is pure: no chrono"),
    ("a file in core", {"src/core/a.cpp": "#include <fstream>\n"}, "core is pure: no fstream"),
    ("a system call in core", {"src/core/a.cpp": "#include <unistd.h>\n"}, "core is pure: no unistd.h"),
    ("a socket in core", {"src/core/a.cpp": "#include <sys/socket.h>\n"}, "core is pure: no sys/socket.h"),
    ("a log in core", {"src/core/a.cpp": '#include "base/log.h"\n'}, "core is pure: no base/log.h"),
    ("core reads the clock", {"src/core/a.cpp": "base::SystemClock clock;\n"},
     "core is pure: no SystemClock"),
    ("core may speak of the clock", {"src/core/a.cpp": "// SystemClock is for shells.\n"}, None),
    ("a thread in server", {"src/server/a.cpp": "#include <thread>\n"}, None),
    ("src includes gpusim", {"src/agent/a.cpp": '#include "gpusim/nvml/nvml_types.h"\n'},
     "src never includes gpusim"),
    ("src includes a header of gpusim's folder",
     {"src/agent/a.cpp": '#include "nvml/nvml_types.h"\n', "gpusim/nvml/nvml_types.h": ""},
     "src never includes gpusim"),
    ("gpusim includes itself",
     {"gpusim/nvml/a.cc": '#include "common/text.h"\n', "gpusim/common/text.h": ""}, None),
    ("gpusim includes src", {"gpusim/nvml/a.cc": '#include "base/result.h"\n', "src/base/result.h": ""},
     "gpusim is a product of its own"),
    ("gpusim leaves its folder", {"gpusim/nvml/a.cc": '#include "../../src/base/result.h"\n'},
     "gpusim is a product of its own"),
    ("CMake keeps the arrows",
     {"src/CMakeLists.txt": "cotenant_layer(core SOURCES core/a.cpp DEPENDS base LIBRARIES fmt::fmt)\n"},
     None),
    ("CMake adds an arrow", {"src/CMakeLists.txt": "cotenant_layer(core DEPENDS base ports)\n"},
     "DEPENDS ports gives core an arrow"),
    ("src links gpusim", {"src/CMakeLists.txt": "target_link_libraries(cotenant gpusim_nvml)\n"},
     "src never links gpusim"),
    ("gpusim links cotenant", {"gpusim/CMakeLists.txt": "target_link_libraries(gpusimd cotenant_base)\n"},
     "gpusim never links cotenant's layers"),
    ("gpusim may speak of cotenant", {"gpusim/CMakeLists.txt": "# links nothing of cotenant_base\n"}, None),
]


class ArrowsTest(unittest.TestCase):
    def test_cases(self):
        for name, files, want in CASES:
            with self.subTest(name), tempfile.TemporaryDirectory() as root:
                for path, text in files.items():
                    target = pathlib.Path(root, path)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text)
                found, _ = arrows.check(root)
                if want is None:
                    self.assertEqual(found, [])
                else:
                    self.assertEqual(len(found), 1, found)
                    self.assertIn(want, found[0])

    def test_the_arrows_run_downwards_only(self):
        def below(layer, seen):
            for target in arrows.ARROWS[layer]:
                self.assertNotIn(target, seen, f"a circle through {target}")
                below(target, seen | {target})

        for layer in arrows.ARROWS:
            below(layer, {layer})

    def test_an_empty_root_is_no_success(self):
        with tempfile.TemporaryDirectory() as root:
            self.assertEqual(arrows.main(["arrows.py", root]), 1)


if __name__ == "__main__":
    unittest.main()
