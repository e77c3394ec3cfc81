#include "adapters/docker_frames.h"
#include "codec/stream_message.h"
#include "fuzz_target.h"

namespace {

using cotenant::adapters::DockerFrames;
using cotenant::ports::OutputStream;

struct Output {
  bool good = true;
  std::string text[2];
};

// The engine's output in pieces of `step` bytes.
Output in_pieces(std::string_view bytes, std::size_t step) {
  Output output;
  DockerFrames frames(/*is_raw=*/false);
  for (std::size_t at = 0; at < bytes.size() && output.good; at += step) {
    output.good = frames
                      .feed(bytes.substr(at, step),
                            [&](OutputStream stream, std::string_view part) {
                              output.text[stream == OutputStream::kStderr ? 1 : 0] += part;
                            })
                      .has_value();
  }
  return output;
}

}  // namespace

// The engine's frames mean the same however they are cut; requests, frames and ends of a stream that
// are understood are said and understood again the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cotenant;
  const std::string_view bytes = fuzz::as_text(data, size);
  const Output whole = in_pieces(bytes, bytes.size() + 1);
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}}) {
    const Output cut = in_pieces(bytes, step);
    FUZZ_CHECK(cut.good == whole.good);
    FUZZ_CHECK(cut.text[0] == whole.text[0] && cut.text[1] == whole.text[1]);
  }
  if (const auto frame = codec::decode_stream_frame(bytes)) {
    FUZZ_CHECK(codec::encode_stream_frame(frame->channel, frame->bytes) == bytes);
  }
  if (const auto json = codec::Json::parse(bytes)) {
    if (const auto request = codec::decode_stream_request(*json)) {
      const codec::Json said = codec::encode_stream_request(*request);
      const auto again = codec::decode_stream_request(said);
      FUZZ_CHECK(again.has_value());
      FUZZ_CHECK(codec::encode_stream_request(*again) == said);
    }
  }
  const std::string end = codec::encode_stream_end(codec::decode_stream_end(bytes));
  FUZZ_CHECK(codec::encode_stream_end(codec::decode_stream_end(end)) == end);
  return 0;
}
