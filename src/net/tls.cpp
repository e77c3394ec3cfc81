#include "net/tls.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <string_view>

#include "net/tls_context.h"

namespace cotenant::net {
namespace {

tl::unexpected<base::Error> tls_file_error(std::string_view what, const std::string& file,
                                           std::string_view why) {
  return base::fail(base::ErrorCode::kInvalidParameter,
                    fmt::format("{} {}: {}; want a PEM file", what, file, why));
}

base::Result<TlsContextPtr> new_context(asio::ssl::context::method method) {
  try {
    auto context = std::make_shared<TlsContext>(method);
    SSL_CTX_set_min_proto_version(context->ssl.native_handle(), TLS1_2_VERSION);
    SSL_CTX_set_options(context->ssl.native_handle(), SSL_OP_NO_RENEGOTIATION);
    // OpenSSL would ask for a pass phrase on the terminal.
    context->ssl.set_password_callback(
        [](std::size_t, asio::ssl::context::password_purpose) { return std::string(); });
    return context;
  } catch (const std::exception& error) {
    return base::fail(base::ErrorCode::kUnavailable, fmt::format("TLS: {}", error.what()));
  }
}

}  // namespace

base::Result<TlsContextPtr> load_server_tls(const std::string& certificate_file,
                                            const std::string& key_file) {
  auto made = new_context(asio::ssl::context::tls_server);
  if (!made) return made;
  asio::ssl::context& ssl = (*made)->ssl;
  ErrorCode error;
  ssl.use_certificate_chain_file(certificate_file, error);
  if (error) return tls_file_error("TLS certificate", certificate_file, error.message());
  ssl.use_private_key_file(key_file, asio::ssl::context::pem, error);
  if (error) return tls_file_error("TLS key", key_file, error.message());
  if (SSL_CTX_check_private_key(ssl.native_handle()) != 1) {
    return tls_file_error("TLS key", key_file,
                          fmt::format("is not the key of {}", certificate_file));
  }
  return made;
}

base::Result<TlsContextPtr> load_client_tls(const std::string& ca_file) {
  auto made = new_context(asio::ssl::context::tls_client);
  if (!made) return made;
  asio::ssl::context& ssl = (*made)->ssl;
  ErrorCode error;
  ssl.set_verify_mode(asio::ssl::verify_peer, error);
  if (ca_file.empty()) {
    if (!error) ssl.set_default_verify_paths(error);
  } else if (!error) {
    ssl.load_verify_file(ca_file, error);
  }
  if (error) return tls_file_error("CA certificate", ca_file, error.message());
  return made;
}

}  // namespace cotenant::net
