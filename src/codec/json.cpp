#include "codec/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/src.hpp>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/limits.h"
#include "codec/utf8.h"

namespace cotenant::codec {
namespace {

using base::ErrorCode;
using boost::json::error_code;

// Objects of more members than this look for duplicate keys in a hash set: a hostile body of 1 MiB
// holds more than 100,000 keys, too many for a scan a key.
constexpr std::size_t kScannedMembers = 16;

// Builds the value from the parser's events. Boost.JSON's own handler takes the last of duplicate
// keys, turns 1e999 into infinity and large integers into doubles; this one refuses them.
class TreeHandler {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  Json take() { return std::move(root_); }
  // What this handler refused; empty where the parser itself did.
  const std::string& refusal() const { return refusal_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return open(Json::object()); }
  bool on_object_end(std::size_t, error_code&) { return close(); }
  bool on_array_begin(error_code&) { return open(Json::array()); }
  bool on_array_end(std::size_t, error_code&) { return close(); }
  bool on_key_part(std::string_view part, std::size_t, error_code&) { return collect(part); }
  bool on_key(std::string_view part, std::size_t, error_code& ec) {
    collect(part);
    Frame& frame = frames_.back();
    frame.key = std::exchange(text_, {});
    if (!is_new(frame))
      return refuse(fmt::format("duplicate key \"{}\"", shortened(frame.key)), ec);
    return true;
  }
  bool on_string_part(std::string_view part, std::size_t, error_code&) { return collect(part); }
  bool on_string(std::string_view part, std::size_t, error_code&) {
    collect(part);
    return add(Json(std::exchange(text_, {})));
  }
  bool on_number_part(std::string_view part, error_code&) { return collect(part); }
  bool on_int64(std::int64_t, std::string_view part, error_code& ec) {
    return on_number(part, 0, ec);
  }
  bool on_uint64(std::uint64_t, std::string_view part, error_code& ec) {
    return on_number(part, 0, ec);
  }
  bool on_double(double approximate, std::string_view part, error_code& ec) {
    return on_number(part, approximate, ec);
  }
  bool on_bool(bool value, error_code&) { return add(Json(value)); }
  bool on_null(error_code&) { return add(Json()); }
  bool on_comment_part(std::string_view, error_code&) { return true; }
  bool on_comment(std::string_view, error_code&) { return true; }

 private:
  struct Frame {
    Json value;  // an object or an array
    std::string key;
    std::unordered_set<std::string> keys;  // only where the object is large
  };

  bool collect(std::string_view part) {
    text_ += part;
    return true;
  }

  bool refuse(std::string why, error_code& ec) {
    refusal_ = std::move(why);
    ec = boost::json::error::exception;  // any error stops the parser; refusal_ has the reason
    return false;
  }

  bool open(Json container) {
    frames_.push_back(Frame{std::move(container), {}, {}});
    return true;
  }

  bool close() {
    Json done = std::move(frames_.back().value);
    frames_.pop_back();
    return add(std::move(done));
  }

  bool add(Json value) {
    if (frames_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Frame& frame = frames_.back();
    if (frame.value.is_array()) {
      frame.value.as_array().push_back(std::move(value));
    } else {
      frame.value.as_object().push_back({std::move(frame.key), std::move(value)});
    }
    return true;
  }

  static bool is_new(Frame& frame) {
    const Json::Object& members = frame.value.as_object();
    if (members.size() < kScannedMembers) {
      return std::none_of(members.begin(), members.end(),
                          [&](const Json::Member& member) { return member.name == frame.key; });
    }
    if (frame.keys.empty()) {
      for (const Json::Member& member : members) frame.keys.insert(member.name);
    }
    return frame.keys.insert(frame.key).second;
  }

  // The parser's own doubles are not always the nearest ones, so the digits are read again here.
  bool on_number(std::string_view part, double approximate, error_code& ec) {
    collect(part);
    const std::string digits = std::exchange(text_, {});
    const char* const end = digits.data() + digits.size();
    if (digits.find_first_of(".eE") == std::string::npos) {
      std::int64_t integer = 0;
      if (std::from_chars(digits.data(), end, integer).ec == std::errc{}) return add(Json(integer));
      return refuse(fmt::format("the integer {} does not fit 64 bits; the largest is {}",
                                shortened(digits), std::numeric_limits<std::int64_t>::max()),
                    ec);
    }
    double value = 0;
    if (std::from_chars(digits.data(), end, value).ec != std::errc{}) {
      // Out of range: too near to zero is zero, too large is refused.
      if (!(std::fabs(approximate) < 1)) {
        return refuse(fmt::format("the number {} is too large; the largest is about 1.8e308",
                                  shortened(digits)),
                      ec);
      }
      value = 0;
    }
    return add(Json(value));
  }

  Json root_;
  std::vector<Frame> frames_;
  std::string text_;  // of the key, string or number that is being read
  std::string refusal_;
};

using Parser = boost::json::basic_parser<TreeHandler>;

Parser make_parser() {
  boost::json::parse_options options;
  options.max_depth = base::limits::kJsonDepth;
  return Parser(options);
}

// The offset of the byte at which the parser notices what is wrong with `text`. It does not tell,
// so the text is fed again in ever smaller pieces: the piece that fails says where.
std::size_t find_error_position(std::string_view text) {
  std::size_t known_good = 0;
  for (const std::size_t step : {std::size_t{4096}, std::size_t{1}}) {
    Parser parser = make_parser();
    error_code ec;
    if (known_good > 0) parser.write_some(true, text.data(), known_good, ec);
    while (known_good < text.size()) {
      const std::size_t piece = std::min(step, text.size() - known_good);
      const std::size_t used = parser.write_some(true, text.data() + known_good, piece, ec);
      if (ec || used < piece) break;
      known_good += piece;
    }
  }
  return known_good;
}

std::string describe(const error_code& ec) {
  using boost::json::error;
  if (ec == error::incomplete) return "the document ends too early";
  if (ec == error::too_deep) {
    return fmt::format("arrays and objects may be nested at most {} deep",
                       base::limits::kJsonDepth);
  }
  if (ec == error::exponent_overflow) return "the number's exponent is too large";
  if (ec == error::syntax) return "not valid JSON (or a string that is not valid UTF-8)";
  return ec.message();
}

void write_string(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t bytes = utf8_sequence_bytes(text);
    if (bytes == 0) {
      out += "\xEF\xBF\xBD";  // U+FFFD: a container's output may be anything, our JSON may not
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out += text.substr(0, bytes);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\b') {
      out += "\\b";
    } else if (c == '\f') {
      out += "\\f";
    } else {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  out += '"';
}

// The shortest digits that read back as the same double. An integral one keeps ".0", so that it
// reads back as a double. JSON has no infinity and no NaN: null, as JavaScript writes them.
void write_double(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  const std::string_view digits(buffer.data(),
                                static_cast<std::size_t>(result.ptr - buffer.data()));
  out += digits;
  if (digits.find_first_of(".e") == std::string_view::npos) out += ".0";
}

class Writer {
 public:
  explicit Writer(bool pretty) : pretty_(pretty) {}

  void write(const Json& value, std::size_t depth) {
    if (value.is_array()) {
      write_items(value.as_array(), '[', ']', depth,
                  [&](const Json& item) { write(item, depth + 1); });
    } else if (value.is_object()) {
      write_items(value.as_object(), '{', '}', depth, [&](const Json::Member& member) {
        write_string(member.name, out_);
        out_ += pretty_ ? ": " : ":";
        write(member.value, depth + 1);
      });
    } else if (value.is_string()) {
      write_string(value.as_string(), out_);
    } else if (value.is_integer()) {
      out_ += fmt::format("{}", value.as_integer());
    } else if (value.is_double()) {
      write_double(value.as_double(), out_);
    } else if (value.is_bool()) {
      out_ += value.as_bool() ? "true" : "false";
    } else {
      out_ += "null";
    }
  }

  std::string take() { return std::move(out_); }

 private:
  template <class Items, class WriteItem>
  void write_items(const Items& items, char open, char close, std::size_t depth,
                   WriteItem write_item) {
    out_ += open;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += ',';
      first = false;
      new_line(depth + 1);
      write_item(item);
    }
    if (!first) new_line(depth);
    out_ += close;
  }

  void new_line(std::size_t depth) {
    if (!pretty_) return;
    out_ += '\n';
    out_.append(2 * depth, ' ');
  }

  bool pretty_;
  std::string out_;
};

}  // namespace

Json Json::object() {
  return Json(Object{});
}

Json Json::object(std::initializer_list<Member> members) {
  return Json(Object(members));
}

base::Result<Json> Json::parse(std::string_view text) {
  Parser parser = make_parser();
  error_code ec;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), ec);
  if (!ec && used == text.size()) return parser.handler().take();

  std::string why;
  if (!ec) {
    why = "text after the end of the document";
  } else if (!parser.handler().refusal().empty()) {
    why = parser.handler().refusal();
  } else {
    why = describe(ec);
  }
  const std::size_t position = ec ? find_error_position(text) : used;
  return base::fail(ErrorCode::kSerialization,
                    fmt::format("JSON, byte {}: {}", position, std::move(why)));
}

std::string Json::dump() const {
  Writer writer(false);
  writer.write(*this, 0);
  return writer.take();
}

std::string Json::dump_pretty() const {
  Writer writer(true);
  writer.write(*this, 0);
  return writer.take();
}

std::string_view Json::kind_name() const {
  if (is_bool()) return "a boolean";
  if (is_integer()) return "an integer";
  if (is_double()) return "a number";
  if (is_string()) return "a string";
  if (is_array()) return "an array";
  if (is_object()) return "an object";
  return "null";
}

double Json::as_double() const {
  if (is_integer()) return static_cast<double>(as_integer());
  return std::get<double>(value_);
}

const Json* Json::find(std::string_view name) const {
  if (!is_object()) return nullptr;
  for (const Member& member : as_object()) {
    if (member.name == name) return member.value.is_null() ? nullptr : &member.value;
  }
  return nullptr;
}

std::string Json::string_or(std::string_view name, std::string_view fallback) const {
  const Json* value = find(name);
  return value != nullptr && value->is_string() ? value->as_string() : std::string(fallback);
}

std::int64_t Json::integer_or(std::string_view name, std::int64_t fallback) const {
  const Json* value = find(name);
  return value != nullptr && value->is_integer() ? value->as_integer() : fallback;
}

bool Json::bool_or(std::string_view name, bool fallback) const {
  const Json* value = find(name);
  return value != nullptr && value->is_bool() ? value->as_bool() : fallback;
}

const Json::Array& Json::array_or_empty(std::string_view name) const {
  static const Array kEmpty;
  const Json* value = find(name);
  return value != nullptr && value->is_array() ? value->as_array() : kEmpty;
}

Json& Json::set(std::string_view name, Json value) {
  if (is_null()) value_ = Object{};
  Object& members = as_object();
  const auto at = std::find_if(members.begin(), members.end(),
                               [&](const Member& member) { return member.name == name; });
  if (at != members.end()) {
    at->value = std::move(value);
  } else {
    members.push_back({std::string(name), std::move(value)});
  }
  return *this;
}

Json& Json::push(Json value) {
  if (is_null()) value_ = Array{};
  as_array().push_back(std::move(value));
  return *this;
}

bool operator==(const Json& left, const Json& right) {
  return left.value_ == right.value_;
}

}  // namespace cotenant::codec
