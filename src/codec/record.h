// Durable records: one JSON document for each cluster, task definition, instance, task and client
// token.
//
// Keys: "cluster/<name>", "taskdef/<family>/<revision, 10 digits>", "instance/<id>", "task/<id>",
// "token/<cluster>/<token>",
// "workload/<cluster>", "workload-shape/<cluster>/<index, 5 digits>". Every value carries the schema version `v`; a higher one than ours is
// refused, so that an older cotenant does not misread a newer database.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/result.h"
#include "core/effect.h"
#include "core/state.h"

namespace cotenant::codec {

inline constexpr int kRecordSchemaVersion = 1;

std::string record_key(const core::RecordRef& ref);

// The record's present value; nothing where the state has it no more (then it is to be removed).
std::optional<std::string> encode_record(const core::State& state, const core::RecordRef& ref);

// The whole state from its records, with all reservations taken. Agents count as disconnected.
// Errors: kProtocol, naming the record and what is wrong with it.
base::Result<core::State> decode_records(const std::map<std::string, std::string>& records);

}  // namespace cotenant::codec
