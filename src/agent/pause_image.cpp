#include "agent/pause_image.h"

#include <fmt/format.h>

#include <numeric>
#include <string_view>

#include "agent/pause_program.h"
#include "base/hash.h"

namespace cotenant::agent {
namespace {

constexpr std::size_t kTarBlock = 512;

void put(std::string& block, std::size_t at, std::string_view text) {
  block.replace(at, text.size(), text);
}

}  // namespace

std::string pause_image_name() {
  return "cotenant/pause:" + base::digest_hex(std::string(pause_program())).substr(0, 12);
}

// Fields and offsets: POSIX.1-2001, pax, "ustar interchange format".
std::string pause_image_tar() {
  const std::string_view program = pause_program();
  std::string header(kTarBlock, '\0');
  put(header, 0, std::string_view(kPauseProgram).substr(1));
  put(header, 100, "0000755");
  put(header, 108, "0000000");  // owner
  put(header, 116, "0000000");  // group
  put(header, 124, fmt::format("{:011o}", program.size()));
  put(header, 136, "00000000000");  // time
  put(header, 148, "        ");     // checksum, counted as blanks
  put(header, 156, "0");            // a file
  put(header, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  const unsigned sum =
      std::accumulate(header.begin(), header.end(), 0U,
                      [](unsigned total, char c) { return total + static_cast<unsigned char>(c); });
  put(header, 148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));

  std::string tar = header + std::string(program);
  tar.resize((tar.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  return tar + std::string(2 * kTarBlock, '\0');
}

}  // namespace cotenant::agent
