#include "codec/stream_message.h"

#include <limits>
#include <utility>

#include "base/limits.h"
#include "codec/json_members.h"
#include "codec/json_reader.h"
#include "codec/utf8.h"

namespace cotenant::codec {

using base::ErrorCode;
using base::fail;
using base::Result;

Json encode_stream_request(const StreamRequest& request) {
  Json json = Json::object();
  if (request.kind == StreamKind::kLogs) {
    json.set("kind", "logs");
    if (request.follow) json.set("follow", true);
    if (request.tail) json.set("tail", *request.tail);
    set_number(json, "sinceMs", request.since_ms);
    if (request.timestamps) json.set("timestamps", true);
    return json;
  }
  json.set("kind", "exec");
  set_array(json, "command", request.command);
  if (request.with_input) json.set("stdin", true);
  if (request.tty) json.set("tty", true);
  return json;
}

Result<StreamRequest> decode_stream_request(const Json& json) {
  constexpr std::int64_t kLinesMax = 1'000'000'000;
  std::optional<base::Error> error;
  JsonReader reader(json, "", error);
  StreamRequest request;
  const std::string kind = reader.text("kind", true);
  if (kind == "logs") {
    request.follow = reader.flag("follow", false);
    request.tail = reader.number("tail", false, 0, kLinesMax);
    request.since_ms =
        reader.number("sinceMs", false, 0, std::numeric_limits<std::int64_t>::max() / 1000)
            .value_or(0);
    request.timestamps = reader.flag("timestamps", false);
  } else if (kind == "exec") {
    request.kind = StreamKind::kExec;
    request.command = reader.texts("command");
    request.with_input = reader.flag("stdin", false);
    request.tty = reader.flag("tty", false);
    if (request.command.empty() || request.command.front().empty()) {
      reader.refuse("command: must name a program");
    }
    std::size_t bytes = 0;
    for (const std::string& word : request.command) {
      bytes += word.size() + 1;
      // A program's arguments end there.
      if (word.find('\0') != std::string::npos) {
        reader.refuse("command: must not hold the character U+0000");
      }
    }
    if (bytes > kExecCommandBytes) {
      reader.refuse(
          fmt::format("command: has {} bytes; at most {} are allowed", bytes, kExecCommandBytes));
    }
  } else {
    reader.refuse(fmt::format("kind: '{}' must be logs or exec", shortened(kind)));
  }
  if (error) return fail(ErrorCode::kInvalidParameter, error->message);
  return request;
}

std::string encode_stream_frame(StreamChannel channel, std::string_view bytes) {
  std::string frame(1, static_cast<char>(channel));
  frame += bytes;
  return frame;
}

Result<StreamFrame> decode_stream_frame(std::string_view text) {
  if (text.empty() || static_cast<unsigned char>(text.front()) >
                          static_cast<unsigned char>(StreamChannel::kResize)) {
    return fail(ErrorCode::kProtocol, "the frame names no channel of a stream");
  }
  return StreamFrame{static_cast<StreamChannel>(text.front()), text.substr(1)};
}

std::string encode_stream_end(const StreamEnd& end) {
  Json json = Json::object();
  set_text(json, "error", valid_utf8(end.error));
  if (end.exit_code) json.set("exitCode", *end.exit_code);
  return json.dump();
}

StreamEnd decode_stream_end(std::string_view text) {
  StreamEnd end;
  const Result<Json> json = Json::parse(text);
  if (!json) {
    end.error = "the stream's end cannot be read: " + json.error().message;
    return end;
  }
  end.error = json->string_or("error", "");
  if (const Json* code = json->find("exitCode");
      code != nullptr && code->is_integer() && std::in_range<int>(code->as_integer())) {
    end.exit_code = static_cast<int>(code->as_integer());
  }
  return end;
}

}  // namespace cotenant::codec
