// Self-signed certificates for the TLS tests, made when they are needed.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace cotenant::net_test {

// A folder with certificate and key of a server; removed at the end.
class TestCertificate {
 public:
  // `names` as in a subjectAltName: "IP:127.0.0.1,DNS:localhost". Valid from `begin_s` to `end_s`
  // seconds from now.
  explicit TestCertificate(const std::string& names, long begin_s = -3600, long end_s = 3600)
      : folder_(testing::TempDir() + "cotenant-tls-" + std::to_string(::getpid()) + "-" +
                std::to_string(next_++)) {
    std::filesystem::create_directories(folder_);
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"),
                                                                  &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> x509(X509_new(), &X509_free);
    X509_set_version(x509.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509.get()), begin_s);
    X509_gmtime_adj(X509_getm_notAfter(x509.get()), end_s);
    X509_set_pubkey(x509.get(), key.get());
    X509_NAME* const name = X509_get_subject_name(x509.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("cotenant test"), -1, -1, 0);
    X509_set_issuer_name(x509.get(), name);
    X509V3_CTX context;
    X509V3_set_ctx(&context, x509.get(), x509.get(), nullptr, nullptr, 0);
    X509_EXTENSION* const extension =
        X509V3_EXT_conf_nid(nullptr, &context, NID_subject_alt_name, names.c_str());
    X509_add_ext(x509.get(), extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(x509.get(), key.get(), EVP_sha256());
    write(certificate(), [&](BIO* file) { PEM_write_bio_X509(file, x509.get()); });
    write(this->key(), [&](BIO* file) {
      PEM_write_bio_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    write(locked_key(), [&](BIO* file) {
      unsigned char phrase[] = "phrase";
      PEM_write_bio_PrivateKey(file, key.get(), EVP_aes_128_cbc(), phrase, 6, nullptr, nullptr);
    });
  }
  ~TestCertificate() { std::filesystem::remove_all(folder_); }
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  std::string certificate() const { return folder_ + "/certificate.pem"; }
  std::string key() const { return folder_ + "/key.pem"; }
  std::string locked_key() const { return folder_ + "/locked-key.pem"; }  // needs a pass phrase

 private:
  template <class Write>
  static void write(const std::string& path, Write put) {
    const std::unique_ptr<BIO, decltype(&BIO_free_all)> file(BIO_new_file(path.c_str(), "w"),
                                                             &BIO_free_all);
    ASSERT_TRUE(file);
    put(file.get());
  }

  static inline int next_ = 0;
  const std::string folder_;
};

}  // namespace cotenant::net_test
