// Signatures against AWS's published test suite (AWS Signature Version 4 Test Suite: its key, date,
// region and service; the signatures of the named cases), against ourselves, and what is refused.
#include "net/sigv4.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "net/crypto.h"

namespace cotenant::net {
namespace {

constexpr std::int64_t kSuiteTime = 1440938160;  // 20150830T123600Z
const AwsCredentials kSuiteKey{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
const SigV4Rules kSuiteRules{"us-east-1", "service", 300};

std::optional<std::string> suite_secret(std::string_view key) {
  if (key != kSuiteKey.access_key_id) return std::nullopt;
  return kSuiteKey.secret_access_key;
}

ports::HttpRequest suite_request(const std::string& method, const std::string& target,
                                 std::vector<ports::HttpHeader> headers = {},
                                 const std::string& body = "") {
  ports::HttpRequest request{method, target, {{"Host", "example.amazonaws.com"}}, body, {}};
  request.headers.insert(request.headers.end(), headers.begin(), headers.end());
  request.headers.push_back({"X-Amz-Date", "20150830T123600Z"});
  return request;
}

TEST(SigV4Test, AgreesWithTheSuite) {
  struct Case {
    std::string name;
    ports::HttpRequest request;
    std::string signed_headers;
    std::string signature;
  };
  const std::string plain = "host;x-amz-date";
  const std::string one = "host;my-header1;x-amz-date";
  const Case cases[] = {
      {"get-vanilla", suite_request("GET", "/"), plain,
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-relative", suite_request("GET", "/example/.."), plain,
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-slash", suite_request("GET", "//"), plain,
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"get-unreserved",
       suite_request("GET", "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
       plain, "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-vanilla-query-order-key-case", suite_request("GET", "/?Param2=value2&Param1=value1"),
       plain, "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-utf8-query", suite_request("GET", "/?%E1%88%B4=bar"), plain,
       "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
      {"get-header-key-duplicate",
       suite_request(
           "GET", "/",
           {{"My-Header1", "value2"}, {"My-Header1", "value2"}, {"My-Header1", "value1"}}),
       one, "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
      {"get-header-value-trim",
       suite_request("GET", "/", {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}}),
       "host;my-header1;my-header2;x-amz-date",
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
      {"folded header",
       suite_request("GET", "/", {{"My-Header1", "value1\r\n  value2\r\n     value3"}}), one,
       "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd"},
      {"post-vanilla", suite_request("POST", "/"), plain,
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"post-vanilla-query", suite_request("POST", "/?Param1=value1"), plain,
       "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
      {"post-x-www-form-urlencoded",
       suite_request("POST", "/", {{"Content-Type", "application/x-www-form-urlencoded"}},
                     "Param1=value1"),
       "content-type;host;x-amz-date",
       "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
  };
  for (Case row : cases) {
    const std::string canonical =
        canonical_request(row.request, row.signed_headers, sha256_hex(row.request.body));
    EXPECT_EQ(sigv4_signature(canonical, "20150830T123600Z", kSuiteKey.secret_access_key,
                              "us-east-1", "service"),
              row.signature)
        << row.name << "\n"
        << canonical;
    row.request.headers.push_back(
        {"Authorization",
         "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
         "SignedHeaders=" +
             row.signed_headers + ", Signature=" + row.signature});
    const auto verified = verify_sigv4(row.request, kSuiteRules, kSuiteTime, suite_secret);
    ASSERT_TRUE(verified) << row.name << ": " << verified.error().message;
    EXPECT_EQ(*verified, "AKIDEXAMPLE");
  }
}

// What the JavaScript SDK, botocore and we send.
ports::HttpRequest ecs_request() {
  return {"POST",
          "/",
          {{"Host", "127.0.0.1:8484"},
           {"Content-Type", "application/x-amz-json-1.1"},
           {"X-Amz-Target", "AmazonEC2ContainerServiceV20141113.ListTasks"},
           {"User-Agent", "test"}},
          "{\"cluster\":\"default\"}",
          {}};
}

const SigV4Rules kEcsRules{"us-east-1", "ecs", 300};

std::string& header_of(ports::HttpRequest& request, std::string_view name) {
  for (auto& header : request.headers) {
    if (header.name == name) return header.value;
  }
  request.headers.push_back({std::string(name), ""});
  return request.headers.back().value;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from << " is not in " << text;
  text.replace(at, from.size(), to);
}

TEST(SigV4Test, WhatIsRefusedAndWhy) {
  using base::ErrorCode;
  using Change = std::function<void(ports::HttpRequest&)>;
  struct Case {
    std::string name;
    Change change;
    ErrorCode code;
    std::string text;
  };
  const auto drop = [](std::string name) {
    return [name](ports::HttpRequest& request) {
      std::erase_if(request.headers, [&](const auto& header) { return header.name == name; });
    };
  };
  const auto in_authorization = [](std::string from, std::string to) {
    return [=](ports::HttpRequest& request) {
      replace(header_of(request, "Authorization"), from, to);
    };
  };
  const auto set = [](std::string name, std::string value) {
    return [=](ports::HttpRequest& request) { header_of(request, name) = value; };
  };
  const Case cases[] = {
      {"not signed", drop("Authorization"), ErrorCode::kMissingAuthenticationToken,
       "Missing Authentication Token"},
      {"empty", set("Authorization", " "), ErrorCode::kMissingAuthenticationToken, "Missing"},
      {"in the query",
       [&](ports::HttpRequest& request) {
         drop("Authorization")(request);
         request.target = "/?X-Amz-Signature=00";
       },
       ErrorCode::kIncompleteSignature, "not in the query"},
      {"twice",
       [](ports::HttpRequest& request) {
         request.headers.push_back({"authorization", "x"});
       },
       ErrorCode::kIncompleteSignature, "sent 2 times"},
      {"basic", set("Authorization", "Basic YTpi"), ErrorCode::kIncompleteSignature,
       "must begin with AWS4-HMAC-SHA256, not 'Basic'"},
      {"SigV2", set("Authorization", "AWS a:b"), ErrorCode::kIncompleteSignature, "not 'AWS'"},
      {"SigV4a", in_authorization("AWS4-HMAC", "AWS4-ECDSA-P256"), ErrorCode::kIncompleteSignature,
       "must begin"},
      {"only the algorithm", set("Authorization", "AWS4-HMAC-SHA256"),
       ErrorCode::kIncompleteSignature, "requires 'Credential'"},
      {"no SignedHeaders",
       in_authorization("SignedHeaders=content-type;host;x-amz-date;x-amz-target, ", ""),
       ErrorCode::kIncompleteSignature, "requires 'SignedHeaders'"},
      {"no signature",
       [](ports::HttpRequest& request) {
         auto& text = header_of(request, "Authorization");
         text.resize(text.find(", Signature="));
       },
       ErrorCode::kIncompleteSignature, "requires 'Signature'"},
      {"unknown part", in_authorization("Signature=", "Signum="), ErrorCode::kIncompleteSignature,
       "is none of"},
      {"a part twice", in_authorization(", Sig", ", Signature=" + std::string(64, '0') + ", Sig"),
       ErrorCode::kIncompleteSignature, "comes twice"},
      {"a huge header", set("Authorization", "AWS4-HMAC-SHA256 " + std::string(9000, 'x')),
       ErrorCode::kIncompleteSignature, "more than 8192"},
      {"short signature", in_authorization("Signature=", "Signature=0"),
       ErrorCode::kIncompleteSignature, "64 lower-case hex"},
      {"credential in four parts", in_authorization("/us-east-1", ""),
       ErrorCode::kIncompleteSignature, "Credential must be"},
      {"credential in six parts", in_authorization("/us-east-1", "/us-east-1/x"),
       ErrorCode::kIncompleteSignature, "Credential must be"},
      {"an empty region", in_authorization("/us-east-1", "/"), ErrorCode::kIncompleteSignature,
       "empty part"},
      {"headers not in order", in_authorization("content-type;host", "host;content-type"),
       ErrorCode::kIncompleteSignature, "ascending"},
      {"a header twice", in_authorization("content-type;host", "content-type;host;host"),
       ErrorCode::kIncompleteSignature, "ascending"},
      {"a header in capitals", in_authorization("content-type", "Content-Type"),
       ErrorCode::kIncompleteSignature, "lower-case"},
      {"no date", drop("X-Amz-Date"), ErrorCode::kIncompleteSignature, "X-Amz-Date"},
      {"a date in another form", set("X-Amz-Date", "2026-08-30T12:36:00Z"),
       ErrorCode::kIncompleteSignature, "ISO 8601"},
      {"an impossible date", set("X-Amz-Date", "20260231T000000Z"), ErrorCode::kIncompleteSignature,
       "X-Amz-Date"},
      {"two dates",
       [](ports::HttpRequest& request) {
         request.headers.push_back({"x-amz-date", "20150830T123600Z"});
       },
       ErrorCode::kIncompleteSignature, "sent 2 times"},
      {"unknown key", in_authorization("AKIDEXAMPLE", "AKIDSTRANGER"),
       ErrorCode::kUnrecognizedClient, "security token included in the request is invalid"},
      {"a session token", set("X-Amz-Security-Token", "abc"), ErrorCode::kUnrecognizedClient,
       "security token"},
      {"another region", in_authorization("us-east-1", "eu-west-1"), ErrorCode::kInvalidSignature,
       "valid region: 'us-east-1', not 'eu-west-1'"},
      {"another service", in_authorization("/ecs/", "/s3/"), ErrorCode::kInvalidSignature,
       "correct service: 'ecs', not 's3'"},
      {"another terminator", in_authorization("aws4_request", "aws5_request"),
       ErrorCode::kInvalidSignature, "valid terminator"},
      {"another day", in_authorization("20150830", "20150831"), ErrorCode::kInvalidSignature,
       "Date in Credential scope"},
      {"Host is not signed", in_authorization("host;", ""), ErrorCode::kInvalidSignature,
       "'Host' must be a 'SignedHeader'"},
      {"the target is not signed", in_authorization(";x-amz-target", ""),
       ErrorCode::kInvalidSignature, "'X-Amz-Target' must be a 'SignedHeader'"},
      {"a header added", set("X-Amz-Meta", "1"), ErrorCode::kInvalidSignature,
       "'X-Amz-Meta' must be"},
      {"a signed header missing", drop("Content-Type"), ErrorCode::kInvalidSignature,
       "names 'content-type', which the request does not have"},
      {"another body", [](ports::HttpRequest& request) { request.body += " "; },
       ErrorCode::kInvalidSignature, "does not match"},
      {"another target", set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.StopTask"),
       ErrorCode::kInvalidSignature, "does not match"},
      {"another host", set("Host", "127.0.0.1:80"), ErrorCode::kInvalidSignature, "does not match"},
      {"another method", [](ports::HttpRequest& request) { request.method = "PUT"; },
       ErrorCode::kInvalidSignature, "does not match"},
      {"another path", [](ports::HttpRequest& request) { request.target = "/v1/logs"; },
       ErrorCode::kInvalidSignature, "does not match"},
      {"another query", [](ports::HttpRequest& request) { request.target = "/?a=b"; },
       ErrorCode::kInvalidSignature, "does not match"},
      {"one digit",
       [](ports::HttpRequest& request) {
         char& last = header_of(request, "Authorization").back();
         last = last == '0' ? '1' : '0';
       },
       ErrorCode::kInvalidSignature, "does not match"},
  };
  for (const Case& row : cases) {
    ports::HttpRequest request = ecs_request();
    sign_sigv4(request, kSuiteKey, "us-east-1", "ecs", kSuiteTime);
    ASSERT_TRUE(verify_sigv4(request, kEcsRules, kSuiteTime, suite_secret)) << row.name;
    row.change(request);
    const auto verified = verify_sigv4(request, kEcsRules, kSuiteTime, suite_secret);
    ASSERT_FALSE(verified) << row.name;
    EXPECT_EQ(verified.error().code, row.code) << row.name << ": " << verified.error().message;
    EXPECT_NE(verified.error().message.find(row.text), std::string::npos)
        << row.name << ": " << verified.error().message;
  }
}

TEST(SigV4Test, TheWindow) {
  struct Case {
    std::int64_t now_s;
    std::string refused;  // empty: accepted
  };
  const Case cases[] = {
      {kSuiteTime, ""},
      {kSuiteTime + 300, ""},
      {kSuiteTime - 300, ""},
      {kSuiteTime + 301,
       "Signature expired: 20150830T123600Z is now earlier than 20150830T123601Z "
       "(20150830T124101Z - 5 min.)"},
      {kSuiteTime - 301,
       "Signature not yet current: 20150830T123600Z is still later than 20150830T123559Z "
       "(20150830T123059Z + 5 min.)"},
      {kSuiteTime + 365 * 86400, "Signature expired"},
      {0, "Signature not yet current"},
  };
  for (const Case& row : cases) {
    ports::HttpRequest request = ecs_request();
    sign_sigv4(request, kSuiteKey, "us-east-1", "ecs", kSuiteTime);
    const auto verified = verify_sigv4(request, kEcsRules, row.now_s, suite_secret);
    EXPECT_EQ(verified.has_value(), row.refused.empty()) << row.now_s;
    if (verified) continue;
    EXPECT_EQ(verified.error().code, base::ErrorCode::kInvalidSignature);
    EXPECT_EQ(verified.error().message.find(row.refused), 0u) << verified.error().message;
  }
}

TEST(SigV4Test, TheBodysHashMayBeSentAndMustThenBeTrue) {
  struct Case {
    std::string name;
    std::string hash;
    bool accepted;
  };
  const Case cases[] = {
      {"the body's", sha256_hex(ecs_request().body), true},
      {"another body's", sha256_hex("x"), false},
      {"unsigned", "UNSIGNED-PAYLOAD", false},
      {"streaming", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", false},
      {"empty", "", false},
  };
  for (const Case& row : cases) {
    ports::HttpRequest request = ecs_request();
    request.headers.push_back({"X-Amz-Content-Sha256", row.hash});
    sign_sigv4(request, kSuiteKey, "us-east-1", "ecs", kSuiteTime);
    const auto verified = verify_sigv4(request, kEcsRules, kSuiteTime, suite_secret);
    EXPECT_EQ(verified.has_value(), row.accepted) << row.name;
  }
}

TEST(CryptoTest, KnownAnswers) {
  // FIPS 180-2, appendix B; RFC 4231, test case 2.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
}

TEST(CryptoTest, RandomTextUsesAllOfItsAlphabet) {
  const std::string text = random_text(2000, "abc");
  EXPECT_EQ(text.size(), 2000u);
  EXPECT_EQ(text.find_first_not_of("abc"), std::string::npos);
  for (const char c : std::string("abc")) EXPECT_NE(text.find(c), std::string::npos);
  EXPECT_NE(random_text(32, "0123456789abcdef"), random_text(32, "0123456789abcdef"));
}

}  // namespace
}  // namespace cotenant::net
