#!/usr/bin/env python3
"""embed-program.py PROGRAM OUT.CPP: the program's bytes as agent::pause_program()."""
import sys

program, out = sys.argv[1:3]
with open(program, "rb") as file:
    data = file.read()
rows = [", ".join(f"{byte:#04x}" for byte in data[at:at + 16]) for at in range(0, len(data), 16)]
with open(out, "w") as file:
    file.write('#include "agent/pause_program.h"\n\nnamespace cotenant::agent {\nnamespace {\n\n'
               "constexpr unsigned char kPauseBytes[] = {\n    "
               + ",\n    ".join(rows)
               + "};\n\n}  // namespace\n\nstd::string_view pause_program() {\n"
               "  return {reinterpret_cast<const char*>(kPauseBytes), sizeof(kPauseBytes)};\n"
               "}\n\n}  // namespace cotenant::agent\n")
