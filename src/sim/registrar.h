// The callers who make what tasks need: clusters, task definitions, tags; and who take it away again.
//
// Of each thing it is known which states it may be in: after an acknowledged call one, after a call of
// unknown fate two. What is looked at narrows that: what has been seen stays so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "sim/caller.h"

namespace cotenant::sim {

class Registrar {
 public:
  Registrar(Env& env, Caller& caller);

  // One definition of each kind that a run needs.
  void register_definitions();
  void register_definition(std::size_t kind);
  void deregister_definition();
  void delete_definitions();
  void create_cluster(const std::string& name);
  void delete_cluster(const std::string& name);
  // Puts a tag on something, or takes one away. `task`: one that may be chosen, with its cluster; or
  // an empty id.
  void tag(const std::string& cluster, const std::string& task_id);

  // A family, or at times one revision of it.
  std::string any_definition(std::size_t kind);
  // A call that named `family` has just been carried out with this revision.
  void ran(const std::string& family, std::int64_t revision, bool named);

  // Against what has been stored.
  void check(const core::State& state);

 private:
  // Bits of the states that something may be in.
  enum : unsigned { kActive = 1, kInactive = 2, kDeleting = 4, kGone = 8 };
  using DefinitionKey = std::pair<std::string, std::int64_t>;  // family, revision
  struct Definition {
    std::string image;
    unsigned may_be = kActive;
  };
  // A key's possible values; none: it is not there.
  using TagValues = std::set<std::optional<std::string>>;
  using TagKey = std::pair<core::RecordRef, std::string>;

  const DefinitionKey* any_known();
  void delete_settled(const std::vector<DefinitionKey>& keys, Fate fate,
                      const core::ItemsReply* reply);
  void check_clusters(const core::State& state);
  void check_definitions(const core::State& state);
  void check_tags(const core::State& state);

  Env& env_;
  Caller& caller_;
  std::int64_t images_ = 0;
  std::map<std::string, unsigned> clusters_;  // bits
  std::map<DefinitionKey, Definition> definitions_;
  std::vector<DefinitionKey> known_;  // to choose from
  std::map<TagKey, TagValues> tags_;
  std::map<core::RecordRef, std::string> cluster_of_;  // what tags_ names, and where it is
};

}  // namespace cotenant::sim
