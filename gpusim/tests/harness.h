// Real processes for the tests: a folder, a gpusimd in it, programs with captured output. Nothing
// waits for a fixed time; everything polls until a deadline.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace gpusim::test {

using Environment = std::map<std::string, std::string>;

std::string binary(const std::string& name);

// True as soon as `condition` is; false after the deadline.
bool eventually(const std::function<bool()>& condition, int deadline_s = 20);

std::string read_file(const std::string& path);
bool exists(const std::string& path);
unsigned mode_of(const std::string& path);

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// A child process. Killed at the end if it still runs.
class Process {
 public:
  Process(std::vector<std::string> arguments, const Environment& environment);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // The next line of standard output; "" when there is none in time.
  std::string line();
  void write(const std::string& text);
  void close_input();
  void kill(int signal);
  // Exit code, or 128 + signal; -1 when it does not end in time.
  int wait(int deadline_s = 20);
  // All that is left of standard output, then standard error, after wait().
  std::string output();
  std::string error_output();

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int errors_ = -1;
  int status_ = -1;
  bool ended_ = false;
  std::string pending_;
};

struct Outcome {
  int exit_code;
  std::string output;
  std::string errors;
};
Outcome run(std::vector<std::string> arguments, const Environment& environment = {},
            const std::string& input = "");

// A gpusimd that accepts connections.
class Gpusimd {
 public:
  explicit Gpusimd(const std::string& gpus, std::vector<std::string> more = {});
  const std::string& dir() const { return dir_; }
  Process& process() { return *process_; }
  std::string uuid(int minor) const;
  Environment environment() const;
  // Starts anew on the same folder.
  void restart();

 private:
  void start();
  TempDir folder_;
  std::string dir_;
  std::vector<std::string> arguments_;
  std::unique_ptr<Process> process_;
};

// A control daemon (-f) with its own folders, and its console.
class Mps {
 public:
  Mps(const Gpusimd& driver, Environment more = {}, std::vector<std::string> flags = {"-M"});
  ~Mps();
  Mps(const Mps&) = delete;
  Mps& operator=(const Mps&) = delete;
  Process& daemon() { return *daemon_; }
  std::string pipe() const { return folder_ / "pipe"; }
  std::string control_log() const { return read_file(folder_ / "log/control.log"); }
  std::string server_log() const { return read_file(folder_ / "log/server.log"); }
  // The daemon's and console's environment, and that of a client.
  Environment environment() const { return environment_; }
  Environment client(const std::string& limit = "") const;

  Outcome console(const std::string& commands) const;
  std::string ask(const std::string& command) const { return console(command).output; }
  // Starts a server and waits until it is ACTIVE; its pid.
  std::string start_server();

 private:
  TempDir folder_;
  Environment base_;
  Environment environment_;
  std::unique_ptr<Process> daemon_;
};

// A client of libcuda that runs the steps of cuda_probe.cc.
std::unique_ptr<Process> probe(const Environment& environment, std::vector<std::string> steps);
// The lines of a probe that runs to its end.
std::string probe_lines(const Environment& environment, std::vector<std::string> steps);

// A probe's line "spin 0 MS": did the kernel take the time it was modelled to take? What passes between
// the events besides counts too, so a loaded machine may show more, never less.
bool took_ms(const std::string& line, long milliseconds);

// `gpusim <words>` on the driver's folder.
Outcome gpusim(const Gpusimd& driver, std::vector<std::string> words);

// Used MiB of a device (without the reserved part), asked from gpusimd.
long used_mib(const Gpusimd& driver, unsigned device);

}  // namespace gpusim::test
