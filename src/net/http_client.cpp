#include "net/http_client.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "net/blocking_io.h"
#include "net/fd_stream.h"
#include "net/http_message.h"

namespace cotenant::net {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using std::chrono::milliseconds;

using Request = http::request<http::string_body>;

constexpr std::size_t kStreamChunkBytes = std::size_t{16} * 1024;
// An error text of a refused stream() goes into a message.
constexpr std::size_t kErrorTextBytes = 2048;
// 100 Continue, 103 Early Hints: skipped, but not for ever.
constexpr int kInterimAnswers = 16;

// One exchange on one connection.
class Call {
 public:
  Call(const Endpoint& endpoint, const HttpClientOptions& options, const TlsContextPtr& tls,
       const ports::HttpRequest& request, std::stop_token stop)
      : endpoint_(endpoint),
        options_(options),
        tls_(tls),
        request_(request),
        io_(std::move(stop)) {}

  BlockingIo& io() { return io_; }

  base::Status open();

  // Reads the header of the final answer into `parser`.
  template <class Body>
  base::Status read_header(std::optional<http::response_parser<Body>>& parser);

  base::Result<ports::HttpResponse> read_response();
  base::Status read_stream(const std::function<void(std::string_view)>& on_data);
  base::Result<ports::HttpResponse> receive(const std::function<void(std::string_view)>& on_data);
  using Upgraded = std::variant<std::unique_ptr<ports::ByteStream>, ports::HttpResponse>;
  base::Result<Upgraded> upgrade();

  tl::unexpected<base::Error> fail(base::ErrorCode code, std::string_view why) const {
    return base::fail(
        code, fmt::format("{} {} at {}: {}", request_.method,
                          std::string_view(request_.target).substr(0, 200), endpoint_.text, why));
  }
  tl::unexpected<base::Error> fail(ErrorCode error) const;

 private:
  Request make_message() const;
  std::string refusal_text(http::response_parser<http::buffer_body>& parser);
  // Reads what is there, at most `piece`'s size; false at the end of the body.
  base::Result<bool> read_piece(http::response_parser<http::buffer_body>& parser,
                                std::array<char, kStreamChunkBytes>& piece, std::size_t& size);

  const Endpoint& endpoint_;
  const HttpClientOptions& options_;
  const TlsContextPtr& tls_;
  const ports::HttpRequest& request_;
  bool asks_upgrade_ = false;
  BlockingIo io_;
  beast::flat_buffer buffer_;
};

tl::unexpected<base::Error> Call::fail(ErrorCode error) const {
  using base::ErrorCode;
  if (io_.time_is_up()) return fail(ErrorCode::kTimeout, "no complete answer in time");
  if (io_.stopped()) return fail(ErrorCode::kUnavailable, "stopped");
  if (error == http::error::end_of_stream) {
    return fail(ErrorCode::kIo, "the server closed the connection without an answer");
  }
  if (error == http::error::partial_message) {
    return fail(ErrorCode::kIo, "the connection broke in the middle of the answer");
  }
  if (error == http::error::body_limit) {
    return fail(ErrorCode::kProtocol,
                fmt::format("the answer is larger than {} bytes", options_.body_bytes));
  }
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return fail(ErrorCode::kProtocol,
                fmt::format("the answer's header is larger than {} bytes", options_.header_bytes));
  }
  if (error.category() == http::make_error_code(http::error::bad_method).category()) {
    return fail(ErrorCode::kProtocol, fmt::format("not an HTTP answer: {}", error.message()));
  }
  return fail(ErrorCode::kIo, error.message());
}

Request Call::make_message() const {
  Request message;
  message.version(11);
  message.method_string(request_.method);
  message.target(request_.target);
  if (ports::header_value(request_.headers, "Host").empty()) {
    message.set(http::field::host, endpoint_.host_header());
  }
  if (ports::header_value(request_.headers, "User-Agent").empty()) {
    message.set(http::field::user_agent, "cotenant");
  }
  for (const ports::HttpHeader& header : request_.headers) {
    if (!is_framing_header(header.name)) message.insert(header.name, header.value);
  }
  message.body() = request_.body;
  if (asks_upgrade_) {
    message.set(http::field::connection, "Upgrade");
    message.set(http::field::upgrade, "tcp");
  } else {
    message.keep_alive(false);
  }
  message.prepare_payload();
  return message;
}

base::Status Call::open() {
  if (auto valid = check_request(request_); !valid) {
    return fail(base::ErrorCode::kInvalidParameter, valid.error().message);
  }
  if (auto connected = io_.connect(endpoint_); !connected) {
    return base::fail(std::move(connected).error());
  }
  if (tls_ != nullptr) {
    if (auto secured = io_.secure(endpoint_, tls_); !secured) {
      return base::fail(std::move(secured).error());
    }
  }
  const Request message = make_message();
  const ErrorCode error =
      io_.await([&](auto handler) { http::async_write(io_.socket(), message, handler); });
  // A server may answer (413, 400) and close before it has read everything: its answer says more
  // than our broken pipe, so try to read it.
  const bool peer_closed =
      error == asio::error::broken_pipe || error == asio::error::connection_reset;
  if (error && !peer_closed) return fail(error);
  return {};
}

template <class Body>
base::Status Call::read_header(std::optional<http::response_parser<Body>>& parser) {
  for (int i = 0; i < kInterimAnswers; ++i) {
    parser.emplace();
    parser->header_limit(static_cast<std::uint32_t>(options_.header_bytes));
    if constexpr (std::is_same_v<Body, http::buffer_body>) {
      parser->body_limit(boost::none);  // a stream has no end
    } else {
      parser->body_limit(options_.body_bytes);
    }
    if (request_.method == "HEAD") parser->skip(true);
    const ErrorCode error = io_.await(
        [&](auto handler) { http::async_read_header(io_.socket(), buffer_, *parser, handler); });
    if (error) return fail(error);
    const unsigned status = parser->get().result_int();
    if (status >= 200 || status == 101) return {};
  }
  return fail(base::ErrorCode::kProtocol, "too many interim (1xx) answers");
}

base::Result<ports::HttpResponse> Call::read_response() {
  std::optional<http::response_parser<http::string_body>> parser;
  if (auto read = read_header(parser); !read) return base::fail(std::move(read).error());
  const ErrorCode error =
      io_.await([&](auto handler) { http::async_read(io_.socket(), buffer_, *parser, handler); });
  if (error) return fail(error);
  auto message = parser->release();
  ports::HttpResponse response;
  response.status = static_cast<int>(message.result_int());
  for (const auto& field : message) {
    response.headers.push_back({std::string(field.name_string()), std::string(field.value())});
  }
  response.body = std::move(message.body());
  return response;
}

base::Result<bool> Call::read_piece(http::response_parser<http::buffer_body>& parser,
                                    std::array<char, kStreamChunkBytes>& piece, std::size_t& size) {
  size = 0;
  if (parser.is_done()) return false;
  auto& body = parser.get().body();
  body.data = piece.data();
  body.size = piece.size();
  ErrorCode error = io_.await(
      [&](auto handler) { http::async_read_some(io_.socket(), buffer_, parser, handler); });
  size = piece.size() - body.size;
  if (error == http::error::need_buffer) error = {};
  if (error) return fail(error);
  return true;
}

std::string Call::refusal_text(http::response_parser<http::buffer_body>& parser) {
  std::string text;
  std::array<char, kStreamChunkBytes> piece{};
  std::size_t size = 0;
  io_.set_deadline(SteadyClock::now() + options_.connect_timeout);
  while (text.size() < kErrorTextBytes) {
    const base::Result<bool> more = read_piece(parser, piece, size);
    text.append(piece.data(), size);
    if (!more || !*more) break;  // the status matters, the text is a help
  }
  text.resize(std::min(text.size(), kErrorTextBytes));
  return text;
}

base::Result<ports::HttpResponse> Call::receive(
    const std::function<void(std::string_view)>& on_data) {
  std::optional<http::response_parser<http::buffer_body>> parser;
  if (auto read = read_header(parser); !read) return base::fail(std::move(read).error());
  ports::HttpResponse response;
  response.status = static_cast<int>(parser->get().result_int());
  if (response.status != 200) {
    response.body = refusal_text(*parser);
    return response;
  }
  std::array<char, kStreamChunkBytes> piece{};
  for (;;) {
    std::size_t size = 0;
    const base::Result<bool> more = read_piece(*parser, piece, size);
    if (size > 0 && !io_.stopped()) on_data(std::string_view(piece.data(), size));
    if (!more) return base::fail(more.error());
    if (!*more) return response;
  }
}

base::Result<Call::Upgraded> Call::upgrade() {
  if (tls_ != nullptr) {
    // The connection would outlive this call's io_context, which carries its TLS.
    return fail(base::ErrorCode::kInvalidParameter,
                "connections both ways are offered over a unix socket or plain HTTP only");
  }
  asks_upgrade_ = true;
  if (auto opened = open(); !opened) return base::fail(std::move(opened).error());
  std::optional<http::response_parser<http::buffer_body>> parser;
  if (auto read = read_header(parser); !read) return base::fail(std::move(read).error());
  ports::HttpResponse response;
  response.status = static_cast<int>(parser->get().result_int());
  if (response.status != 101 && response.status != 200) {
    response.body = refusal_text(*parser);
    return Upgraded(std::move(response));
  }
  const auto early = buffer_.data();
  std::string bytes(static_cast<const char*>(early.data()), early.size());
  base::UniqueFd socket(::fcntl(io_.socket().native_handle(), F_DUPFD_CLOEXEC, 0));
  if (!socket) return fail(base::ErrorCode::kIo, std::strerror(errno));
  return Upgraded(make_fd_stream(std::move(socket), std::move(bytes)));
}

base::Status Call::read_stream(const std::function<void(std::string_view)>& on_data) {
  const base::Result<ports::HttpResponse> response = receive(on_data);
  if (!response) return base::fail(response.error());
  if (response->status == 200) return {};
  return fail(base::ErrorCode::kProtocol,
              fmt::format("answered {}: {}", response->status, response->body));
}

class Client final : public ports::HttpClient {
 public:
  Client(Endpoint endpoint, HttpClientOptions options, TlsContextPtr tls)
      : endpoint_(std::move(endpoint)), options_(std::move(options)), tls_(std::move(tls)) {}

  base::Result<ports::HttpResponse> send(const ports::HttpRequest& request,
                                         milliseconds timeout) const override {
    try {
      Call call(endpoint_, options_, tls_, request, {});
      call.io().set_deadline(SteadyClock::now() + timeout);
      if (auto opened = call.open(); !opened) return base::fail(std::move(opened).error());
      return call.read_response();
    } catch (const std::exception& error) {
      return base::fail(base::ErrorCode::kIo, fmt::format("{}: {}", endpoint_.text, error.what()));
    }
  }

  base::Status stream(const ports::HttpRequest& request,
                      const std::function<void(std::string_view)>& on_data,
                      std::stop_token stop) const override {
    try {
      Call call(endpoint_, options_, tls_, request, std::move(stop));
      call.io().set_deadline(SteadyClock::now() + options_.connect_timeout);
      base::Status outcome = call.open();
      call.io().set_deadline({});
      if (outcome) outcome = call.read_stream(on_data);
      if (call.io().stopped()) return {};
      return outcome;
    } catch (const std::exception& error) {
      return base::fail(base::ErrorCode::kIo, fmt::format("{}: {}", endpoint_.text, error.what()));
    }
  }

  base::Result<ports::HttpResponse> receive(const ports::HttpRequest& request,
                                            const std::function<void(std::string_view)>& on_data,
                                            std::stop_token stop) const override {
    try {
      Call call(endpoint_, options_, tls_, request, std::move(stop));
      call.io().set_deadline(SteadyClock::now() + options_.connect_timeout);
      if (auto opened = call.open(); !opened) return base::fail(std::move(opened).error());
      call.io().set_deadline({});
      return call.receive(on_data);
    } catch (const std::exception& error) {
      return base::fail(base::ErrorCode::kIo, fmt::format("{}: {}", endpoint_.text, error.what()));
    }
  }

  base::Result<Call::Upgraded> upgrade(const ports::HttpRequest& request,
                                       milliseconds timeout) const override {
    try {
      Call call(endpoint_, options_, tls_, request, {});
      call.io().set_deadline(SteadyClock::now() + timeout);
      return call.upgrade();
    } catch (const std::exception& error) {
      return base::fail(base::ErrorCode::kIo, fmt::format("{}: {}", endpoint_.text, error.what()));
    }
  }

 private:
  const Endpoint endpoint_;
  const HttpClientOptions options_;
  const TlsContextPtr tls_;  // null: plain
};

}  // namespace

base::Result<std::unique_ptr<ports::HttpClient>> make_http_client(std::string_view endpoint,
                                                                  HttpClientOptions options) {
  base::Result<Endpoint> parsed = parse_endpoint(endpoint);
  if (!parsed) return base::fail(std::move(parsed).error());
  TlsContextPtr tls;
  if (parsed->is_tls) {
    auto loaded = load_client_tls(options.ca_certificate);
    if (!loaded) return base::fail(std::move(loaded).error());
    tls = std::move(*loaded);
  }
  return std::make_unique<Client>(std::move(*parsed), std::move(options), std::move(tls));
}

}  // namespace cotenant::net
