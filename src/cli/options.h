// The command line's options, with their defaults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cotenant::cli {

struct NodeOptions {
  std::string listen = "127.0.0.1:8484";
  std::string data_dir = "/var/lib/cotenant";
  std::string run_dir;  // empty: derived from data_dir
  std::string region = "us-east-1";
  std::string account_id = "000000000000";
  std::string auth = "sigv4";  // or "off"
  bool allow_plain_http = false;
  std::string tls_certificate;  // PEM files; both or none
  std::string tls_key;

  // The agent's.
  std::string server_url;  // empty: the control plane in this process
  std::string cluster = "default";
  std::string join_token_file;
  std::string ca_certificate;      // of an https control plane; empty: the system's
  std::string runtime = "docker";  // or "process"
  std::string docker_host;         // empty: DOCKER_HOST, else /var/run/docker.sock
  std::string simulate_gpus;       // empty: the machine's own
  std::string nvml_library = "libnvidia-ml.so.1";
  std::string mps_control = "nvidia-cuda-mps-control";
  std::string cdi_dir = "/etc/cdi";
  std::string image_pull = "default";
  std::string registry_config;  // of `docker login`; empty: no credentials
  bool image_cleanup = true;
  std::int64_t image_cleanup_interval_s = 30 * 60;
  std::int64_t image_cleanup_age_s = 60 * 60;
  std::size_t image_cleanup_count = 5;
  std::int64_t task_cleanup_wait_s = 60 * 60;
};

struct ClientOptions {
  std::string endpoint;  // empty: COTENANT_ENDPOINT, else this machine's own (client_endpoint.h)
  std::string data_dir = "/var/lib/cotenant";
  std::string credentials;     // a file; empty: see client_endpoint.h
  std::string region;          // empty: the credentials file's, else us-east-1
  std::string ca_certificate;  // empty: the system's
  std::string cluster = "default";
  bool json = false;
};

struct RunOptions {
  std::string what;  // a file, or family[:revision]
  int count = 1;
  std::string started_by;
  bool wait = false;
};

struct ExplainOptions {
  std::string what;    // a file, a task, or family[:revision]
  int count = 0;       // 0: the file's own, else 1
  int instances = 10;  // listed at most
};

struct StopOptions {
  std::vector<std::string> tasks;  // ids, ARNs, or the beginning of an id
  bool all = false;
  bool wait = false;
  std::string reason;
};

struct TokenOptions {
  std::int64_t expires_in_s = 24 * 3600;
  std::string id;  // of a token, or of an instance
};

struct SimulateOptions {
  std::string nodes;
  std::string pods;
  std::string policies = "Balanced";  // joined by commas
  std::string seeds = "42";           // A or A..B
  double ratio = 1.3;
  double churn = 0;          // offered load; 0: fill-up
  std::int64_t gpu_mib = 0;  // 0: per-mille
  std::int64_t mib = 0;      // 0: not by model
  std::string output = "csv";
  std::string picture;  // empty: none
};

struct LogsOptions {
  std::string task;
  std::string container;  // empty: the task's only one
  bool follow = false;
  std::int64_t tail = -1;  // lines; -1: all
  std::string since;
  bool timestamps = false;
};

struct ExecOptions {
  std::string task;
  std::string container;
  std::vector<std::string> command;
  bool interactive = false;
  bool tty = false;
};

struct DownOptions {
  std::string data_dir = "/var/lib/cotenant";
  std::string docker_host;
  bool keep_data = false;
};

}  // namespace cotenant::cli
