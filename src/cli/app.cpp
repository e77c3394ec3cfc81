#include "cli/app.h"

#include <CLI/CLI.hpp>
#include <functional>

#include "base/limits.h"
#include "base/log.h"
#include "cli/client_verbs.h"
#include "cli/exit_code.h"
#include "cli/image_options.h"
#include "cli/node_verbs.h"
#include "cli/version.h"
#include "codec/explain_request.h"

namespace cotenant::cli {
namespace {

constexpr const char* kDescription =
    "cotenant shares one physical NVIDIA GPU among containers, behind the Amazon ECS API.\n\n"
    "To begin, in one terminal:   cotenant up --simulate-gpus 2xL4   (or without it, on a GPU machine)\n"
    "and in another:              cotenant run examples/three-models.json\n"
    "                             cotenant gpus";

constexpr const char* kFooter =
    "Exit codes: 0 done; 1 refused, stderr says why; 2 the command line is wrong; 3 no control plane "
    "answers.\nDOCKER_HOST names the container engine where --docker-host is not given.";

// An unset shell variable must not mean the working folder, nor the machine's own GPUs.
std::string check_given(const std::string& text) {
  return text.empty() ? "must not be empty" : std::string();
}

std::string check_account_id(const std::string& text) {
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  return text.size() == 12 && digits ? std::string() : "must be 12 digits, as an AWS account's id";
}

std::string check_region(const std::string& text) {
  const bool allowed =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  return !text.empty() && allowed ? std::string() : "must be like us-east-1: a-z, 0-9 and hyphens";
}

using Verb = std::function<int()>;

// 128 TiB; the index adds up the memory of a node's GPUs in 32 bits.
constexpr std::int64_t kReplayedGpuMibMax = 1 << 27;

struct AllOptions {
  NodeOptions node;
  ClientOptions client;
  RunOptions run;
  ExplainOptions explain;
  StopOptions stop;
  LogsOptions logs;
  ExecOptions exec;
  DownOptions down;
  TokenOptions token;
  SimulateOptions simulate;
  bool ps_all = false;
  std::string output = "table";
  bool verbose = false;
};

void add_control_plane_options(CLI::App* verb, NodeOptions& options) {
  verb->add_option("--listen", options.listen,
                   "ADDRESS:PORT of the API; off loopback it needs --auth sigv4 and TLS")
      ->capture_default_str();
  verb->add_option(
          "--auth", options.auth,
          "sigv4: callers sign with a key pair of <data dir>/credentials; off: loopback only")
      ->check(CLI::IsMember({"sigv4", "off"}))
      ->capture_default_str();
  verb->add_option("--tls-certificate", options.tls_certificate,
                   "PEM file with the API's certificate and its chain");
  verb->add_option("--tls-key", options.tls_key, "PEM file with its key");
  verb->add_flag("--allow-plain-http", options.allow_plain_http,
                 "listen off loopback without TLS: the network itself must be private");
  verb->add_option("--region", options.region, "the region in ARNs")
      ->check(check_region)
      ->capture_default_str();
  verb->add_option("--account-id", options.account_id, "the account in ARNs")
      ->check(check_account_id)
      ->capture_default_str();
}

void add_agent_options(CLI::App* verb, NodeOptions& options) {
  verb->add_option("--simulate-gpus", options.simulate_gpus,
                   "use simulated GPUs, for example 2xL4 or 1xH100,4xA10G")
      ->check(check_given);
  verb->add_option("--runtime", options.runtime,
                   "docker: a container engine; process: none, containers are processes of this "
                   "machine without isolation")
      ->check(CLI::IsMember({"docker", "process"}))
      ->capture_default_str();
  verb->add_option(
      "--docker-host", options.docker_host,
      "the container engine, for example unix:///var/run/docker.sock (or DOCKER_HOST)");
  verb->add_option("--nvml-library", options.nvml_library, "NVIDIA's management library")
      ->capture_default_str();
  verb->add_option("--mps-control", options.mps_control, "NVIDIA's MPS control program")
      ->capture_default_str();
  verb->add_option("--cdi-dir", options.cdi_dir, "where the CDI spec of the GPUs lies")
      ->capture_default_str();
  add_image_options(verb, options);
}

void add_folder_options(CLI::App* verb, NodeOptions& options) {
  verb->add_option("--data-dir", options.data_dir, "what must survive: the database, the identity")
      ->check(check_given)
      ->capture_default_str();
  verb->add_option("--run-dir", options.run_dir,
                   "sockets and MPS daemons; by default derived from --data-dir");
}

void add_client_options(CLI::App* verb, AllOptions& all) {
  verb->add_option(
      "--endpoint", all.client.endpoint,
      "the control plane; by default COTENANT_ENDPOINT, else this machine's own by its "
      "unix socket, else http://127.0.0.1:8484");
  verb->add_option("--data-dir", all.client.data_dir,
                   "the one that `up` was given, on this machine")
      ->check(check_given)
      ->capture_default_str();
  verb->add_option("--credentials", all.client.credentials,
                   "a credentials file; by default AWS_SHARED_CREDENTIALS_FILE, else "
                   "<data dir>/credentials");
  verb->add_option("--ca-certificate", all.client.ca_certificate,
                   "PEM file: who has signed an https endpoint's certificate; by default the "
                   "system's authorities");
  verb->add_option("--region", all.client.region, "for signatures; by default the credentials' own")
      ->check(check_region);
  verb->add_option("--cluster", all.client.cluster, "the cluster's name")->capture_default_str();
  verb->add_option("--output", all.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->capture_default_str();
}

CLI::App* add_node_verb(CLI::App& app, AllOptions& all, Role role, const char* name,
                        const char* description, const Composition& composition, Verb& chosen) {
  CLI::App* verb = app.add_subcommand(name, description);
  add_folder_options(verb, all.node);
  if (role != Role::kAgent) add_control_plane_options(verb, all.node);
  if (role != Role::kServer) add_agent_options(verb, all.node);
  verb->callback(
      [&, role] { chosen = [&, role] { return node_verb(role, all.node, composition); }; });
  return verb;
}

void add_node_verbs(CLI::App& app, AllOptions& all, const Composition& composition, Verb& chosen) {
  add_node_verb(app, all, Role::kUp, "up", "Run control plane and agent here, in the foreground",
                composition, chosen);
  add_node_verb(app, all, Role::kServer, "server", "Run the control plane only", composition,
                chosen);
  CLI::App* agent =
      add_node_verb(app, all, Role::kAgent, "agent", "Run the agent only, on a machine with GPUs",
                    composition, chosen);
  agent->add_option("--server", all.node.server_url, "the control plane, https://ADDRESS:PORT")
      ->required();
  agent->add_option("--cluster", all.node.cluster, "the cluster to join")->capture_default_str();
  agent->add_option("--ca-certificate", all.node.ca_certificate,
                    "PEM file: who has signed an https control plane's certificate; by default the "
                    "system's authorities");
  agent->add_option("--join-token-file", all.node.join_token_file,
                    "a file with what `cotenant token create` printed; needed until it has joined");

  CLI::App* down = app.add_subcommand("down", "End cotenant here and remove all that `up` left");
  down->add_option("--data-dir", all.down.data_dir, "the one that `up` was given")
      ->check(check_given)
      ->capture_default_str();
  down->add_option("--docker-host", all.down.docker_host, "by default the one that `up` used");
  down->add_flag("--keep-data", all.down.keep_data, "keep the data folder");
  down->callback([&] { chosen = [&] { return down_verb(all.down, composition); }; });
}

void add_token_verbs(CLI::App& app, AllOptions& all, Verb& chosen) {
  CLI::App* token = app.add_subcommand("token", "Make, list and revoke what agents join with");
  token->require_subcommand(1);
  const auto add = [&](const char* name, const char* description, std::function<int()> verb) {
    CLI::App* sub = token->add_subcommand(name, description);
    add_client_options(sub, all);
    sub->callback([&chosen, verb = std::move(verb)] { chosen = verb; });
    return sub;
  };
  add("create", "Make a token; it is printed this once",
      [&all] { return token_create_verb(all.client, all.token); })
      ->add_option("--expires-in", all.token.expires_in_s, "seconds that it is good for")
      ->check(CLI::Range(base::limits::kJoinTokenSecondsMin, base::limits::kJoinTokenSecondsMax))
      ->capture_default_str();
  add("list", "Show the tokens", [&all] { return token_list_verb(all.client); });
  add("revoke", "End a token; who has joined with it stays",
      [&all] { return token_revoke_verb(all.client, all.token); })
      ->add_option("id", all.token.id, "the token's id")
      ->required();
  add("forget", "End an agent's own key: it must join anew, with a token",
      [&all] { return token_forget_verb(all.client, all.token); })
      ->add_option("instance", all.token.id, "the container instance's id or ARN")
      ->required();
}

void add_stream_verbs(CLI::App& app, AllOptions& all, Verb& chosen) {
  CLI::App* logs = app.add_subcommand("logs", "Show what a task's container has printed");
  logs->add_option("task", all.logs.task, "the task's id (or its beginning) or ARN")->required();
  logs->add_option("container", all.logs.container, "needed where the task has several");
  logs->add_flag("--follow,-f", all.logs.follow, "go on until the container ends");
  logs->add_option("--tail", all.logs.tail, "so many lines from the end")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
  logs->add_option("--since", all.logs.since, "like 10m or 2026-12-01T12:00:00Z");
  logs->add_flag("--timestamps", all.logs.timestamps, "each line with its time");
  add_client_options(logs, all);
  logs->callback([&] { chosen = [&] { return logs_verb(all.client, all.logs); }; });

  CLI::App* exec = app.add_subcommand(
      "exec", "Run a program inside a task's container: exec [-it] TASK CONTAINER -- PROGRAM ...");
  exec->add_option("task", all.exec.task, "the task's id (or its beginning) or ARN")->required();
  exec->add_option("container", all.exec.container, "the container's name")->required();
  exec->add_option("program", all.exec.command, "after --: the program and its arguments")
      ->required();
  exec->add_flag("--interactive,-i", all.exec.interactive, "standard input goes to the program");
  exec->add_flag("--tty,-t", all.exec.tty, "the program gets a terminal");
  add_client_options(exec, all);
  exec->callback([&] { chosen = [&] { return exec_verb(all.client, all.exec); }; });
}

void add_client_verbs(CLI::App& app, AllOptions& all, Verb& chosen) {
  CLI::App* run =
      app.add_subcommand("run", "Run a task: register a definition's file, or name one");
  run->add_option("what", all.run.what, "a task definition's JSON file, or family[:revision]")
      ->required();
  run->add_option("--count", all.run.count, "how many, 1 to 10")
      ->check(CLI::Range(1, base::limits::kRunTaskCountMax))
      ->capture_default_str();
  run->add_option("--started-by", all.run.started_by, "a mark that `ListTasks` can filter by");
  run->add_flag("--wait", all.run.wait, "return when the tasks run, or have failed to");
  add_client_options(run, all);
  run->callback([&] { chosen = [&] { return run_verb(all.client, all.run); }; });

  CLI::App* explain =
      app.add_subcommand("explain", "Tell where a task would go and why, without running anything");
  explain
      ->add_option("what", all.explain.what,
                   "a task definition's or a RunTask input's JSON file, a task's id (or its "
                   "beginning) or ARN, or family[:revision]")
      ->required();
  explain->add_option("--count", all.explain.count, "how many at once, 1 to 100")
      ->check(CLI::Range(1, core::kExplainCountMax));
  explain
      ->add_option("--instances", all.explain.instances,
                   "how many instances are listed, of those that fit and of the others")
      ->check(CLI::Range(0, codec::kExplainedInstancesMax))
      ->capture_default_str();
  add_client_options(explain, all);
  explain->callback([&] { chosen = [&] { return explain_verb(all.client, all.explain); }; });

  CLI::App* ps = app.add_subcommand("ps", "Show tasks and their containers");
  ps->add_flag("--all,-a", all.ps_all, "stopped ones as well");
  add_client_options(ps, all);
  ps->callback([&] { chosen = [&] { return ps_verb(all.client, all.ps_all); }; });

  CLI::App* stop = app.add_subcommand("stop", "Stop tasks");
  CLI::Option* tasks =
      stop->add_option("task", all.stop.tasks, "ids (or their beginnings) or ARNs");
  CLI::Option* every = stop->add_flag("--all", all.stop.all, "every task of the cluster");
  every->excludes(tasks);
  stop->add_option("--reason", all.stop.reason, "shown as the task's stoppedReason");
  stop->add_flag("--wait", all.stop.wait, "return when they have stopped");
  add_client_options(stop, all);
  stop->callback([&] {
    if (all.stop.tasks.empty() && !all.stop.all) throw CLI::RequiredError("task or --all");
    chosen = [&] { return stop_verb(all.client, all.stop); };
  });

  add_token_verbs(app, all, chosen);

  CLI::App* gpus = app.add_subcommand("gpus", "Show each GPU: mode, memory, containers");
  add_client_options(gpus, all);
  gpus->callback([&] { chosen = [&] { return gpus_verb(all.client); }; });
}

void add_simulate_verb(CLI::App& app, SimulateOptions& options, Verb& chosen) {
  CLI::App* verb = app.add_subcommand(
      "simulate", "Replay a trace of requests (openb's columns) through the placement policies");
  verb->add_option("--nodes", options.nodes, "CSV or .csv.xz: sn,cpu_milli,memory_mib,gpu,model")
      ->required();
  verb->add_option("--pods", options.pods,
                   "CSV or .csv.xz: name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec]")
      ->required();
  verb->add_option(
          "--policy", options.policies,
          "one or more, joined by commas: Balanced, TightGpu, BestFit, FGD, TC, TCB, WV, WVonline")
      ->capture_default_str();
  verb->add_option("--seed", options.seeds, "one, or a range A..B")->capture_default_str();
  verb->add_option("--ratio", options.ratio, "demand that arrives, in parts of the GPUs")
      ->check(CLI::Range(0.01, 10.0))
      ->capture_default_str();
  CLI::Option* churn =
      verb->add_option("--churn", options.churn, "let tasks leave, at this offered load")
          ->check(CLI::Range(0.01, 10.0));
  CLI::Option* gpu_mib =
      verb->add_option("--gpu-mib", options.gpu_mib, "MiB of every GPU, instead of per-mille")
          ->check(CLI::Range(std::int64_t{1}, kReplayedGpuMibMax));
  verb->add_option("--mib", options.mib,
                   "GPUs have their model's size; a share is its part of this many MiB")
      ->check(CLI::Range(std::int64_t{1}, kReplayedGpuMibMax))
      ->excludes(gpu_mib);
  verb->add_option("--output", options.output, "csv or json")
      ->check(CLI::IsMember({"csv", "json"}))
      ->capture_default_str();
  verb->add_option("--picture", options.picture, "also draw unallocated % as an SVG file")
      ->excludes(churn);
  verb->callback([&] { chosen = [&] { return simulate_verb(options); }; });
}

}  // namespace

int run_app(int argc, char** argv, const Composition& composition) {
  AllOptions all;
  Verb chosen;
  CLI::App app(kDescription, "cotenant");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("cotenant ") + kVersion);
  app.add_flag("--verbose,-v", all.verbose, "log more");
  app.require_subcommand(1);
  app.fallthrough();
  add_client_verbs(app, all, chosen);
  add_simulate_verb(app, all.simulate, chosen);
  add_stream_verbs(app, all, chosen);
  add_node_verbs(app, all, composition, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    app.exit(error);
    return asked_for_help ? kExitOk : kExitUsage;
  }
  if (all.verbose) base::log::set_level(base::log::Level::kDebug);
  all.client.json = all.output == "json";
  return chosen();
}

}  // namespace cotenant::cli
