// `token`: what agents join with.
#include <fmt/format.h>

#include <ctime>

#include "cli/api_client.h"
#include "cli/client_verbs.h"
#include "cli/exit_code.h"
#include "cli/table.h"

namespace cotenant::cli {
namespace {

std::string utc_text(const codec::Json& token, std::string_view member) {
  const codec::Json* const value = token.find(member);
  if (value == nullptr || !value->is_number()) return "-";
  const auto seconds = static_cast<std::time_t>(value->as_double());
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min);
}

// One call, and what is done with its answer.
template <class Show>
int call_and_show(const ClientOptions& client, const std::string& operation, codec::Json body,
                  Show show) {
  auto api = ApiClient::create(client);
  if (!api) return report(api.error());
  auto reply = api->call("Cotenant." + operation, std::move(body));
  if (!reply) return report(reply.error());
  if (client.json) {
    fmt::print("{}\n", reply->dump_pretty());
  } else {
    show(*reply);
  }
  return kExitOk;
}

}  // namespace

int token_create_verb(const ClientOptions& client, const TokenOptions& options) {
  return call_and_show(
      client, "CreateJoinToken", codec::Json::object({{"expiresInSeconds", options.expires_in_s}}),
      [](const codec::Json& reply) {
        const codec::Json* const token = reply.find("joinToken");
        if (token == nullptr) return;
        // The token alone on stdout, so that it can go into a file.
        fmt::print("{}\n", token->string_or("token", ""));
        fmt::print(stderr, "join token {} is good until {}; it is shown this once\n",
                   token->string_or("id", ""), utc_text(*token, "expiresAt"));
      });
}

int token_list_verb(const ClientOptions& client) {
  return call_and_show(client, "ListJoinTokens", codec::Json::object(),
                       [](const codec::Json& reply) {
                         Table table({"ID", "CREATED", "EXPIRES"});
                         for (const codec::Json& token : reply.array_or_empty("joinTokens")) {
                           table.add({token.string_or("id", ""), utc_text(token, "createdAt"),
                                      utc_text(token, "expiresAt")});
                         }
                         fmt::print("{}", table.empty() ? "no join tokens\n" : table.text());
                       });
}

int token_revoke_verb(const ClientOptions& client, const TokenOptions& options) {
  return call_and_show(client, "RevokeJoinToken", codec::Json::object({{"id", options.id}}),
                       [&](const codec::Json&) { fmt::print("revoked {}\n", options.id); });
}

int token_forget_verb(const ClientOptions& client, const TokenOptions& options) {
  return call_and_show(client, "ForgetAgent",
                       codec::Json::object({{"containerInstance", options.id}}),
                       [&](const codec::Json&) {
                         fmt::print("the agent of {} must join anew, with a token\n", options.id);
                       });
}

}  // namespace cotenant::cli
