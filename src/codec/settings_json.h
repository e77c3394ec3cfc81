// The members of task and container definitions that core::HostSettings, LifeSettings, PortMapping
// and TaskSettings keep, in ECS's own JSON. One form for registered documents and agent messages.
//
// Reading never fails: a member of a wrong kind counts as absent, a number outside of its type's
// range too. Registration has checked kinds (api_schema.h) and rules (task_definition_rules.h)
// before; what was stored or sent by another version is read as far as it is understood.
#pragma once

#include "codec/json.h"
#include "core/task_definition.h"

namespace cotenant::codec {

void read_container_settings(const Json& json, core::ContainerDefinition& container);
// Sets what differs from the default.
void write_container_settings(const core::ContainerDefinition& container, Json& json);

core::TaskSettings read_task_settings(const Json& json);
void write_task_settings(const core::TaskSettings& settings, Json& json);

// "1024" or "1 vCPU" in CPU units; "512", "0.5 GB" in MiB. Nothing where the text is not of that
// form. Source: ECS API reference, RegisterTaskDefinition, cpu and memory.
std::optional<std::int64_t> parse_task_cpu(std::string_view text);
std::optional<std::int64_t> parse_task_memory(std::string_view text);

// [{"bindIP": ..., "containerPort": ..., "hostPort": ..., "protocol": ...}]
Json encode_bindings(const std::vector<core::NetworkBinding>& bindings);
std::vector<core::NetworkBinding> decode_bindings(const Json::Array& array);

}  // namespace cotenant::codec
