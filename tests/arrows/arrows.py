#!/usr/bin/env python3
"""The arrows between the layers (docs/architecture.md), checked on the #include lines and the
CMake files. Prints one line a violation and exits with 1 when there is one.

    arrows.py ROOT        ROOT: the repository's root

The rules are the data at the top; what the compiler checks as well (which folder a target can see at
all) stands there once more, so that a new DEPENDS in CMake cannot silently add an arrow.
"""

import pathlib
import re
import sys

# Layer (a folder of src/) -> the other layers that it may include.
ARROWS = {
    "base": set(),
    "core": {"base"},
    "ports": {"base", "core"},
    "codec": {"base", "core"},
    "net": {"base", "core", "ports"},
    "adapters": {"base", "core", "ports", "codec"},
    "fakes": {"base", "core", "ports"},
    "server": {"base", "core", "ports", "codec", "net"},
    "agent": {"base", "core", "ports", "codec"},
    "sim": {"base", "core", "ports", "codec", "server", "agent", "fakes"},
    "replay": {"base", "core"},
    "cli": {"base", "core", "ports", "codec", "net", "server", "agent", "replay"},
    # main.cpp and composition.*: the only place that names concrete adapters.
    "(root)": {"base", "core", "ports", "codec", "net", "adapters", "server", "agent", "replay", "cli"},
}

# Library header (start of its name) -> where it may be included: a layer or a file of src/.
LIBRARIES = {
    "boost/": {"net", "codec/json.cpp"},
    "openssl/": {"net", "server", "cli"},
    "sqlite3.h": {"adapters"},
    "yaml-cpp/": {"adapters"},
    "dlfcn.h": {"adapters"},
    "CLI/": {"cli"},
    "prometheus/": {"server"},
    "re2/": {"core/query/query_pattern.cpp"},
    "lzma.h": {"replay"},
    "gtest/": set(),
    "gmock/": set(),
}

# Boost costs 10-20 CPU-seconds a file: only these may include it, or a header that leads to it.
BOOST_REACHES_ONLY = re.compile(r"^(net/[^/]+|codec/json\.cpp)$")

# No clock, socket, file, thread, log or JSON in core: it gets time and randomness handed in.
IMPURE_IN_CORE = re.compile(
    r"^(thread|mutex|shared_mutex|atomic|condition_variable|future|stop_token|semaphore|latch|barrier"
    r"|chrono|ctime|fstream|iostream|ostream|istream|filesystem|cstdio|csignal|random"
    r"|base/log\.h|spdlog/.*|(sys|net|netinet|arpa)/.*|[a-z_]+\.h)$")
IMPURE_WORDS_IN_CORE = re.compile(
    r"\b(SystemClock|random_seed|getenv|rand|std::time|std::this_thread|base::log)\b")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SOURCES = {".h", ".hpp", ".cpp", ".cc", ".inc"}


def sources(root):
    if not root.is_dir():
        return []
    return sorted(p for p in root.rglob("*") if p.is_file() and p.suffix in SOURCES)


def includes(path):
    """(line number, name) of every #include of a file."""
    found = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            found.append((number, match.group(2)))
    return found


def layer_of(name):
    """Of a file of src/, given relative to it: its folder; (root) for one right below src/."""
    parts = pathlib.PurePosixPath(name).parts
    return parts[0] if len(parts) > 1 else "(root)"


def check_layer_includes(src, gpusim_folders, report):
    for path in sources(src):
        name = path.relative_to(src).as_posix()
        layer = layer_of(name)
        if layer not in ARROWS:
            report(path, 0, f"src/{layer} is no known layer; give it its arrows in arrows.py")
            continue
        for line, included in includes(path):
            if ".." in pathlib.PurePosixPath(included).parts:
                report(path, line, f'"{included}" leaves its layer by ".."; write "<layer>/<file>"')
            target = layer_of(included) if "/" in included else None
            if target in ARROWS and target != layer and target not in ARROWS[layer]:
                report(path, line, f'{layer} must not see {target}: "{included}"')
            if target == "gpusim" or (target in gpusim_folders and target not in ARROWS
                                      and (src.parent / "gpusim" / included).is_file()):
                report(path, line, f'src never includes gpusim: "{included}"')
            for start, homes in LIBRARIES.items():
                if included.startswith(start) and layer not in homes and name not in homes:
                    report(path, line, f"<{included}> is allowed only in {sorted(homes) or 'tests'}")


def check_boost_reach(src, report):
    """Follows the project's own includes: who gets Boost without naming it?"""
    direct, own = {}, {}
    for path in sources(src):
        name = path.relative_to(src).as_posix()
        direct[name] = [i for _, i in includes(path) if i.startswith("boost/")]
        own[name] = [i for _, i in includes(path) if (src / i).is_file()]

    def reaches(name, seen):
        if direct[name]:
            return [name]
        for included in own[name]:
            if included not in seen:
                seen.add(included)
                way = reaches(included, seen)
                if way:
                    return [name] + way
        return None

    for name in direct:
        if BOOST_REACHES_ONLY.match(name):
            continue
        way = reaches(name, {name})
        if way and len(way) > 1:
            report(src / name, 0, f"gets Boost by {' -> '.join(way)}")


def check_core_is_pure(src, report):
    for path in sources(src / "core"):
        for line, included in includes(path):
            if IMPURE_IN_CORE.match(included):
                report(path, line, f"core is pure: no {included}")
        for line, text in enumerate(path.read_text(errors="replace").splitlines(), 1):
            match = IMPURE_WORDS_IN_CORE.search(text.split("//")[0])
            if match:
                report(path, line, f"core is pure: no {match.group(1)}")


def check_gpusim_includes(root, report):
    src, gpusim = root / "src", root / "gpusim"
    for path in sources(gpusim):
        for line, included in includes(path):
            first = pathlib.PurePosixPath(included).parts[0]
            if first in ("..", "src", "cotenant") or (
                    (src / included).is_file() and not (gpusim / included).is_file()
                    and not (path.parent / included).is_file()):
                report(path, line, f'gpusim is a product of its own: "{included}"')


def strip_cmake_comments(text):
    return re.sub(r"#.*", "", text)


def check_cmake(root, report):
    """The links say the same: DEPENDS adds no arrow, gpusim and cotenant do not link each other."""
    lists = root / "src" / "CMakeLists.txt"
    if lists.is_file():
        text = strip_cmake_comments(lists.read_text())
        for call in re.finditer(r"cotenant_layer\(\s*(\w+)([^)]*)\)", text):
            layer, rest = call.group(1), call.group(2)
            depends = re.search(r"\bDEPENDS\b(.*?)(?=\b(?:SOURCES|LIBRARIES|PRIVATE_LIBRARIES)\b|$)",
                                rest, re.S)
            for target in depends.group(1).split() if depends else []:
                if target not in ARROWS.get(layer, set()):
                    report(lists, 0, f"DEPENDS {target} gives {layer} an arrow that it must not have")
        if re.search(r"\bgpusim\w*", text):
            report(lists, 0, "src never links gpusim")
    for lists in sorted((root / "gpusim").rglob("CMakeLists.txt")):
        if re.search(r"\bcotenant_\w+", strip_cmake_comments(lists.read_text())):
            report(lists, 0, "gpusim never links cotenant's layers")


def check(root):
    """All violations below `root`, as lines of text; and how many files were read."""
    root = pathlib.Path(root)
    found = []

    def report(path, line, text):
        place = path.relative_to(root).as_posix() + (f":{line}" if line else "")
        found.append(f"{place}: {text}")

    gpusim = root / "gpusim"
    folders = {p.name for p in gpusim.iterdir() if p.is_dir()} if gpusim.is_dir() else set()
    check_layer_includes(root / "src", folders, report)
    check_boost_reach(root / "src", report)
    check_core_is_pure(root / "src", report)
    check_gpusim_includes(root, report)
    check_cmake(root, report)
    return found, len(sources(root / "src")) + len(sources(gpusim))


def main(arguments):
    if len(arguments) != 2:
        print(f"usage: {arguments[0]} ROOT", file=sys.stderr)
        return 2
    found, files = check(arguments[1])
    for line in found:
        print(line)
    if files == 0:
        print(f"no source files below {arguments[1]}: is it the repository's root?")
        return 1
    print(f"{files} files, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
