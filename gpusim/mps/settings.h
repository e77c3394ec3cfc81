// The knobs of the simulation on the MPS side, as data: behaviours that differ between machines,
// that are known faults of the real thing, or that a test wants to provoke.
//
// Sources, later ones win: $GPUSIM_DIR/mps.conf ("key=value" lines, # comments), which reaches
// daemons that somebody else starts; GPUSIM_MPS="key=value,key=value" in the daemon's environment;
// `gpusim set KEY VALUE` to the running daemon. A server gets a copy at its start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpusim::mps {

// kAuto: as the driver version has it (driver_traits.h).
enum class Choice { kAuto, kOff, kOn };

struct Settings {
  // Two console sessions at once: the later one fails, as on a real daemon (4 parallel readers,
  // 202 of 800 snapshots failed: sglang-omni PR 2101).
  Choice collide = Choice::kOn;
  uint32_t collide_ms =
      1000;  // a session that has been quiet for so long is in nobody's way (ours)
  Choice old_wording = Choice::kAuto;   // server.log with "Volta MPS:" and without {PID: ...}
  Choice named_memory = Choice::kAuto;  // /dev/shm/cuda.shm.<uid>.<pid hex>.1
  // Some 535 drivers do not apply defaults that are keyed by UUID (k8s-device-plugin PR 572).
  Choice uuid_defaults = Choice::kOn;
  Choice terminate = Choice::kOn;    // off: terminate_client fails, as it may in a fault
  uint32_t initializing_ms = 50;     // how long a server is INITIALIZING
  uint32_t slow_ms = 0;              // by which each console answer is late
  uint32_t hello_timeout_ms = 5000;  // for a client that connects and says nothing
  // After a client was killed with memory in use, the server hangs with this probability: "a signal
  // death with GPU work outstanding may hang server and others" (MPS documentation).
  uint32_t kill_wedges_percent = 0;

  // A text why not, which names the key.
  std::optional<std::string> set(std::string_view key, std::string_view value);
  // Pairs between commas or line ends; # starts a comment. What is wrong is skipped and the first
  // of it reported.
  std::optional<std::string> set_all(std::string_view text);
  // What set_all() takes: one pair a line.
  std::string text() const;
};

// mps.conf, then GPUSIM_MPS. *error: the first complaint, "" for none.
Settings load_settings(std::string* error);

}  // namespace gpusim::mps
