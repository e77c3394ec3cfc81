#include "unsynced_vfs.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <utility>

#include "base/assert.h"

namespace cotenant::adapters {
namespace {

constexpr std::size_t kSectorBytes = 512;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void put_at(std::string& content, std::size_t offset, std::string_view data) {
  if (content.size() < offset + data.size()) content.resize(offset + data.size());
  content.replace(offset, data.size(), data);
}

}  // namespace

// SQLite gives szOsFile bytes; the system's own file follows ours.
struct UnsyncedVfs::File {
  sqlite3_file base;
  UnsyncedVfs* owner;
  std::string* name;  // null: not watched
  sqlite3_file* system() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

struct UnsyncedVfs::Methods {
  static File& file(sqlite3_file* raw) { return *reinterpret_cast<File*>(raw); }
  static UnsyncedVfs& self(sqlite3_vfs* vfs) { return *static_cast<UnsyncedVfs*>(vfs->pAppData); }
  static sqlite3_file* sys(sqlite3_file* raw) { return file(raw).system(); }

  static int close(sqlite3_file* raw) {
    delete std::exchange(file(raw).name, nullptr);
    return sys(raw)->pMethods->xClose(sys(raw));
  }
  static int read(sqlite3_file* raw, void* data, int bytes, sqlite3_int64 offset) {
    return sys(raw)->pMethods->xRead(sys(raw), data, bytes, offset);
  }
  static int write(sqlite3_file* raw, const void* data, int bytes, sqlite3_int64 offset) {
    UnsyncedVfs& owner = *file(raw).owner;
    if (owner.writes_left_ == 0) return SQLITE_FULL;
    if (owner.writes_left_ > 0) --owner.writes_left_;
    const int code = sys(raw)->pMethods->xWrite(sys(raw), data, bytes, offset);
    if (code == SQLITE_OK && file(raw).name != nullptr) {
      owner.record({Kind::kWritten, *file(raw).name, offset,
                    std::string(static_cast<const char*>(data), static_cast<std::size_t>(bytes))});
    }
    return code;
  }
  static int truncate(sqlite3_file* raw, sqlite3_int64 size) {
    const int code = sys(raw)->pMethods->xTruncate(sys(raw), size);
    if (code == SQLITE_OK && file(raw).name != nullptr) {
      file(raw).owner->record({Kind::kCut, *file(raw).name, size, ""});
    }
    return code;
  }
  static int sync(sqlite3_file* raw, int flags) {
    const int code = sys(raw)->pMethods->xSync(sys(raw), flags);
    if (code == SQLITE_OK && file(raw).name != nullptr) {
      file(raw).owner->record({Kind::kSynced, *file(raw).name, 0, ""});
    }
    return code;
  }
  static int size(sqlite3_file* raw, sqlite3_int64* bytes) {
    return sys(raw)->pMethods->xFileSize(sys(raw), bytes);
  }
  static int lock(sqlite3_file* raw, int level) {
    return sys(raw)->pMethods->xLock(sys(raw), level);
  }
  static int unlock(sqlite3_file* raw, int level) {
    return sys(raw)->pMethods->xUnlock(sys(raw), level);
  }
  static int check_lock(sqlite3_file* raw, int* reserved) {
    return sys(raw)->pMethods->xCheckReservedLock(sys(raw), reserved);
  }
  static int control(sqlite3_file* raw, int op, void* argument) {
    return sys(raw)->pMethods->xFileControl(sys(raw), op, argument);
  }
  static int sector_size(sqlite3_file*) { return static_cast<int>(kSectorBytes); }
  // Promises nothing: no atomic writes, no order.
  static int characteristics(sqlite3_file*) { return 0; }
  static int shm_map(sqlite3_file* raw, int page, int bytes, int extend, void volatile** memory) {
    return sys(raw)->pMethods->xShmMap(sys(raw), page, bytes, extend, memory);
  }
  static int shm_lock(sqlite3_file* raw, int offset, int count, int flags) {
    return sys(raw)->pMethods->xShmLock(sys(raw), offset, count, flags);
  }
  static void shm_barrier(sqlite3_file* raw) { sys(raw)->pMethods->xShmBarrier(sys(raw)); }
  static int shm_unmap(sqlite3_file* raw, int remove) {
    return sys(raw)->pMethods->xShmUnmap(sys(raw), remove);
  }

  static constexpr sqlite3_io_methods kIo = {
      2,         close,      read,    write,       truncate,        sync,    size,     lock,
      unlock,    check_lock, control, sector_size, characteristics, shm_map, shm_lock, shm_barrier,
      shm_unmap, nullptr,    nullptr};

  static int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* raw, int flags, int* out) {
    UnsyncedVfs& owner = self(vfs);
    File& opened = file(raw);
    opened.base.pMethods = nullptr;
    opened.owner = &owner;
    opened.name = nullptr;
    const bool watched = name != nullptr && std::string_view(name).starts_with(owner.folder_);
    const bool fresh = watched && !std::filesystem::exists(name);
    // Made by somebody else, who sees to its durability.
    if (watched && !fresh && !owner.knows(name)) owner.durable_[name] = content_of(name);
    const int code = owner.system_->xOpen(owner.system_, name, opened.system(), flags, out);
    if (opened.system()->pMethods == nullptr) return code;
    opened.base.pMethods = &kIo;
    if (!watched) return code;
    opened.name = new std::string(name);
    if (fresh && code == SQLITE_OK) owner.record({Kind::kMade, name, 0, ""});
    return code;
  }
  static int remove(sqlite3_vfs* vfs, const char* name, int sync_folder) {
    UnsyncedVfs& owner = self(vfs);
    const int code = owner.system_->xDelete(owner.system_, name, sync_folder);
    if (code == SQLITE_OK) {
      owner.record({Kind::kRemoved, name, 0, ""});
      if (sync_folder != 0) owner.record({Kind::kSynced, "", 0, ""});
    }
    return code;
  }
};

UnsyncedVfs::UnsyncedVfs(std::string folder) : folder_(std::move(folder)) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    durable_[entry.path()] = content_of(entry.path());
  }
  system_ = sqlite3_vfs_find(nullptr);
  vfs_ = *system_;
  vfs_.szOsFile = static_cast<int>(sizeof(File)) + system_->szOsFile;
  vfs_.zName = "unsynced";
  vfs_.pAppData = this;
  vfs_.pNext = nullptr;
  vfs_.xOpen = Methods::open;
  vfs_.xDelete = Methods::remove;
  COTENANT_ASSERT(sqlite3_vfs_register(&vfs_, 1) == SQLITE_OK);
}

UnsyncedVfs::~UnsyncedVfs() {
  sqlite3_vfs_unregister(&vfs_);
  sqlite3_vfs_register(system_, 1);
}

bool UnsyncedVfs::knows(const std::string& name) const {
  return durable_.contains(name) ||
         std::any_of(changes_.begin(), changes_.end(),
                     [&](const Change& change) { return change.name == name; });
}

void UnsyncedVfs::record(Change change) {
  changes_.push_back(std::move(change));
}

std::map<std::string, std::string> UnsyncedVfs::after_power_failure(std::size_t moment, Loss loss,
                                                                    base::Prng& prng) const {
  // When each file was synced last, and any of them.
  std::map<std::string, std::size_t> synced_at;
  std::size_t any_synced_at = 0;
  for (std::size_t i = 0; i < moment; ++i) {
    if (changes_[i].kind != Kind::kSynced) continue;
    synced_at[changes_[i].name] = i;
    any_synced_at = i;
  }
  const auto survives = [&] {
    return loss == Loss::kNothing || (loss == Loss::kTorn && prng.next() % 2 == 0);
  };
  std::map<std::string, std::string> files = durable_;
  for (std::size_t i = 0; i < moment; ++i) {
    const Change& change = changes_[i];
    const auto synced = synced_at.find(change.name);
    const bool durable = change.kind == Kind::kWritten
                             ? synced != synced_at.end() && i < synced->second
                             : i < any_synced_at;
    switch (change.kind) {
      case Kind::kMade:
        if (durable || survives()) files.try_emplace(change.name);
        break;
      case Kind::kRemoved:
        if (durable || survives()) files.erase(change.name);
        break;
      case Kind::kCut:
        if (files.contains(change.name) && (durable || survives())) {
          files[change.name].resize(static_cast<std::size_t>(change.offset));
        }
        break;
      case Kind::kWritten: {
        const auto file = files.find(change.name);
        if (file == files.end()) break;
        const auto offset = static_cast<std::size_t>(change.offset);
        for (std::size_t at = 0; at < change.data.size(); at += kSectorBytes) {
          if (!durable && !survives()) continue;
          put_at(file->second, offset + at, std::string_view(change.data).substr(at, kSectorBytes));
        }
        break;
      }
      case Kind::kSynced:
        break;
    }
  }
  return files;
}

}  // namespace cotenant::adapters
