#include "replay/line_reader.h"

#include <fmt/format.h>
#include <lzma.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace cotenant::replay {
namespace {

using base::ErrorCode;
using base::fail;

constexpr std::size_t kLineBytes = 64 * 1024;
// What a decoder may take: openb's files need 8 MiB of dictionary.
constexpr std::uint64_t kXzMemoryBytes = std::uint64_t{256} << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Cuts bytes into lines.
class LineCutter {
 public:
  LineCutter(const std::string& path,
             const std::function<base::Status(std::string_view, std::size_t)>& take)
      : path_(path), take_(take) {}

  base::Status feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      line_ += bytes.substr(0, end);
      if (line_.size() > kLineBytes) {
        return fail(ErrorCode::kInvalidParameter, fmt::format("{}: line {} is longer than {} bytes",
                                                              path_, number_ + 1, kLineBytes));
      }
      if (end == std::string_view::npos) return {};
      if (auto status = emit(); !status) return status;
      bytes.remove_prefix(end + 1);
    }
    return {};
  }
  base::Status finish() { return line_.empty() ? base::Status() : emit(); }

 private:
  base::Status emit() {
    const base::Status status = take_(line_, ++number_);
    line_.clear();
    return status;
  }

  const std::string& path_;
  const std::function<base::Status(std::string_view, std::size_t)>& take_;
  std::string line_;
  std::size_t number_ = 0;
};

class XzDecoder {
 public:
  XzDecoder() {
    ready_ = lzma_stream_decoder(&stream_, kXzMemoryBytes, LZMA_CONCATENATED) == LZMA_OK;
  }
  ~XzDecoder() { lzma_end(&stream_); }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

  // An empty input is the end of the file.
  base::Status feed(const std::string& path, std::string_view bytes, LineCutter& lines) {
    if (!ready_) return fail(ErrorCode::kIo, "xz: no memory for the decoder");
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
    stream_.avail_in = bytes.size();
    const lzma_action action = bytes.empty() ? LZMA_FINISH : LZMA_RUN;
    std::array<std::uint8_t, 64 * 1024> out;
    do {
      stream_.next_out = out.data();
      stream_.avail_out = out.size();
      const lzma_ret code = lzma_code(&stream_, action);
      const std::string_view text(reinterpret_cast<const char*>(out.data()),
                                  out.size() - stream_.avail_out);
      if (auto status = lines.feed(text); !status) return status;
      if (code == LZMA_STREAM_END) return {};
      if (code != LZMA_OK) {
        return fail(ErrorCode::kInvalidParameter,
                    fmt::format("{}: is no whole xz file (liblzma error {})", path,
                                static_cast<int>(code)));
      }
    } while (stream_.avail_in > 0 || stream_.avail_out == 0 || action == LZMA_FINISH);
    return {};
  }

 private:
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ready_ = false;
};

bool ends_with_xz(const std::string& path) {
  return path.size() > 3 && path.compare(path.size() - 3, 3, ".xz") == 0;
}

}  // namespace

base::Status read_lines(const std::string& path,
                        const std::function<base::Status(std::string_view, std::size_t)>& take) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  const auto cannot_read = [&] {
    return fail(ErrorCode::kIo, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  };
  if (file == nullptr) return cannot_read();
  LineCutter lines(path, take);
  XzDecoder xz;
  std::array<char, 64 * 1024> buffer;
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), file.get())) {
    const std::string_view bytes(buffer.data(), size);
    const base::Status status =
        ends_with_xz(path) ? xz.feed(path, bytes, lines) : lines.feed(bytes);
    if (!status) return status;
  }
  if (std::ferror(file.get()) != 0) return cannot_read();
  if (ends_with_xz(path)) {
    if (auto status = xz.feed(path, {}, lines); !status) return status;
  }
  return lines.finish();
}

}  // namespace cotenant::replay
