#!/usr/bin/env python3
"""mutations.py [NAME ...]: shows that the simulator finds planted bugs.

Each mutation takes one check or one step out of the product. All are planted at once in a copy of the
sources (build-mutants/), each behind a switch that an environment variable turns on, so that one build
serves for all. cotenant-sim runs with one of them until a seed fails; a mutation that no seed finds is
a failure of this script, and so is a seed that fails without any. Prints a table: the mutation, the
seed, what was seen.
"""
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
COPY = os.path.join(ROOT, "build-mutants")
SEEDS = "1..500"

SWITCH = """#pragma once
#include <cstdlib>
#include <cstring>
inline bool cotenant_mutant(const char* name) {
  static const char* const chosen = std::getenv("COTENANT_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, name) == 0;
}
"""

# name, file, what stands there once, what stands there then: ON is true when this mutation is chosen
MUTATIONS = [
    ("ledger-memory", "core/gpu_ledger.cpp",
     "if (remaining_mib(gpu) < memory_mib) return",
     "if (!ON && remaining_mib(gpu) < memory_mib) return"),
    ("placement-not-told", "core/state.cpp",
     "      instance.gpus.reserve_whole(*gpu, task.id);\n    }\n  }\n  instance_changed(state, instance);",
     "      instance.gpus.reserve_whole(*gpu, task.id);\n    }\n  }\n"
     "  if (!ON) instance_changed(state, instance);"),
    ("ledger-release", "core/state.cpp",
     "  instance.gpus.release(task.id);", "  if (!ON) instance.gpus.release(task.id);"),
    ("status-goes-down", "core/task_rules.cpp",
     "if (container.status == ContainerStatus::kStopped || seen.status < container.status) return",
     "if (!ON && (container.status == ContainerStatus::kStopped || seen.status < container.status)) return"),
    ("freed-when-asked", "core/task_rules.cpp",
     "if (task.desired_status == DesiredStatus::kStopped) return TaskStatus::kStopping;",
     "if (task.desired_status == DesiredStatus::kStopped) {"
     " return ON ? TaskStatus::kStopped : TaskStatus::kStopping; }"),
    ("stop-not-stored", "core/task_rules.cpp",
     "\"Task stopped by user\" : command.reason, context.now_ms);\n"
     "  ++task.version;\n"
     "  outcome.effects.changed_records.insert(",
     "\"Task stopped by user\" : command.reason, context.now_ms);\n"
     "  ++task.version;\n"
     "  if (!ON) outcome.effects.changed_records.insert("),
    ("token-forgotten", "core/task_rules.cpp",
     "    state.client_tokens.emplace(token.key, std::move(token));",
     "    if (!ON) state.client_tokens.emplace(token.key, std::move(token));"),
    ("rollback-keeps-state", "server/core_engine.cpp",
     "  revision_ = snapshot->revision;\n  state_ = std::move(*state);",
     "  revision_ = snapshot->revision;\n  if (!ON) state_ = std::move(*state);"),
    ("answered-though-refused", "server/core_engine.cpp",
     "for (Answer& answer : batch.answers) answer.reply = base::fail(too_large ? cause : refusal());",
     "for (Answer& answer : batch.answers) {"
     " if (!ON) answer.reply = base::fail(too_large ? cause : refusal()); }"),
    ("ack-though-not-stored", "server/agent_hub.cpp",
     "if (!reply) return self->close(reply.error().message);",
     "if (!reply && !ON) return self->close(reply.error().message);"),
    ("frames-uncounted", "agent/server_dialog.cpp",
     "if (message.revision <= revision_) return Heard::kNothing;",
     "if (ON && synced_ && !message.full) revision_ = message.revision - 1;\n"
     "  if (message.revision <= revision_) return Heard::kNothing;"),
    ("stale-snapshot", "agent/agent_logic.cpp",
     "containers_seq_ > found->second.settled_seq;", "containers_seq_ > found->second.settled_seq || ON;"),
    ("gate-of-before", "agent/agent_logic_gpu.cpp",
     "return gpu.good_probe_seq > memory_.at(container_id).created_seq &&",
     "return (ON || gpu.good_probe_seq > memory_.at(container_id).created_seq) &&"),
    ("whole-beside-daemon", "agent/agent_logic_gpu.cpp",
     "return !use.sharing_active && !gpu.daemon_runs &&\n"
     "                              daemons_seq_ > gpu.settled_seq && !busy_gpus_.contains(uuid);",
     "return !use.sharing_active && (ON || (!gpu.daemon_runs &&\n"
     "                              daemons_seq_ > gpu.settled_seq && !busy_gpus_.contains(uuid)));"),
    ("stops-below-clients", "agent/agent_logic_gpu.cpp",
     "} else if (!use.sharing_active) {", "} else if (!use.sharing_active || ON) {"),
    ("change-not-reported", "agent/report_tracker.cpp",
     "} else if (found->second.observation == task &&",
     "} else if ((ON || found->second.observation == task) &&"),
    ("hello-without-strays", "agent/server_dialog.cpp",
     "  hello.running = logic_.running_tasks();", "  if (!ON) hello.running = logic_.running_tasks();"),
    ("definition-gone-in-use", "core/cluster_rules.cpp",
     "  for (const auto& [id, task] : state.tasks) doomed.erase({task.family, task.revision});",
     "  if (!ON) {"
     " for (const auto& [id, task] : state.tasks) doomed.erase({task.family, task.revision}); }"),
    ("revision-given-twice", "core/cluster_rules.cpp",
     "last = std::max(family->second.last_deleted_revision,",
     "last = std::max(ON ? std::int64_t{0} : family->second.last_deleted_revision,"),
    ("cluster-deleted-in-use", "core/cluster_rules.cpp",
     "  if (instances > 0) {", "  if (!ON && instances > 0) {"),
    ("gpus-in-use-missed", "core/instance_rules.cpp",
     "    if (holds) continue;", "    if (ON || holds) continue;"),
    ("gpus-replaced-empty", "core/instance_rules.cpp",
     "  for (const std::string& task_id : task_ids) reserve(state, state.tasks.at(task_id));",
     "  if (!ON) {"
     " for (const std::string& task_id : task_ids) reserve(state, state.tasks.at(task_id)); }"),
    ("joins-with-containers", "core/instance_rules.cpp",
     "  if (command.running_task_ids.empty()) return {};",
     "  if (ON || command.running_task_ids.empty()) return {};"),
    ("deregistered-not-stored", "core/definition_rules.cpp",
     "  effects.changed_records.insert(\n"
     "      {RecordKind::kTaskDefinition, definition->family, definition->revision});",
     "  if (!ON) effects.changed_records.insert(\n"
     "      {RecordKind::kTaskDefinition, definition->family, definition->revision});"),
    ("tag-not-stored", "core/tag_rules.cpp",
     "  outcome.effects.changed_records.insert(ref);",
     "  if (!ON) outcome.effects.changed_records.insert(ref);"),
    ("inactive-definition-runs", "core/task_rules.cpp",
     "  if (definition != nullptr && definition->status != TaskDefinitionStatus::kActive) {",
     "  if (!ON && definition != nullptr && definition->status != TaskDefinitionStatus::kActive) {"),
]


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          **options)


def copy_sources():
    os.makedirs(COPY, exist_ok=True)
    for name in ("src", "cmake", "data", "scripts"):
        target = os.path.join(COPY, name)
        done = run("rsync", "-a", "--delete", "--checksum", f"{ROOT}/{name}/", f"{target}/") \
            if shutil.which("rsync") else run("cp", "-a", f"{ROOT}/{name}", COPY)
        if done.returncode != 0:
            sys.exit(done.stdout)
    lists = open(os.path.join(ROOT, "CMakeLists.txt")).read()
    lists = re.sub(r"add_subdirectory\((?!src\)).*\)\n", "", lists)
    open(os.path.join(COPY, "CMakeLists.txt"), "w").write(lists)


def plant():
    for name, path, before, after in MUTATIONS:
        file = os.path.join(COPY, "src", path)
        text = open(file).read()
        if text.count(before) != 1:
            sys.exit(f"{name}: src/{path} has its text {text.count(before)} times; mend this table")
        after = after.replace("ON", f'cotenant_mutant("{name}")')
        text = text.replace(before, after)
        include = '#include "base/mutant.h"\n'
        open(file, "w").write(text if include in text else include + text)
    open(os.path.join(COPY, "src", "base", "mutant.h"), "w").write(SWITCH)


def build():
    configure = ["cmake", "-G", "Ninja", "-S", COPY, "-B", f"{COPY}/build", "-DCOTENANT_TESTS=OFF",
                 "-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1 -g1"]
    for command in (configure, ["cmake", "--build", f"{COPY}/build", "--target", "cotenant-sim"]):
        done = run(*command)
        if done.returncode != 0:
            sys.exit(f"the mutants do not build:\n{done.stdout[-3000:]}")


def first_failure(mutant):
    """The seed and what was seen; nothing when no seed fails."""
    environment = dict(os.environ, COTENANT_MUTANT=mutant)
    output = run(f"{COPY}/build/cotenant-sim", "--seeds", SEEDS, env=environment).stdout
    seed = re.search(r"--seed (\d+)", output)
    seen = re.search(r"^  at \d+ ms: (.*)$", output, re.M) or re.search(r"(assertion.*)$", output, re.M)
    return (seed.group(1), seen.group(1) if seen else "") if seed else None


def main():
    wanted = sys.argv[1:]
    unknown = set(wanted) - {m[0] for m in MUTATIONS}
    if unknown:
        sys.exit(f"no such mutation: {', '.join(unknown)}")
    copy_sources()
    plant()
    build()
    missed = []
    for name, *_ in MUTATIONS:
        if wanted and name not in wanted:
            continue
        found = first_failure(name)
        print(f"{name:26} {'seed ' + found[0] if found else 'NOT FOUND':10} "
              f"{found[1][:100] if found else ''}", flush=True)
        if not found:
            missed.append(name)
    if first_failure("none"):
        sys.exit("a seed fails without any mutation")
    if missed:
        sys.exit(f"not found by seeds {SEEDS}: {', '.join(missed)}")


main()
