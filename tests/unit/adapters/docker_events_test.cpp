#include "adapters/docker_events.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cotenant::adapters {
namespace {

using Ids = std::vector<std::string>;

std::string event(std::string_view action, std::string_view id) {
  return fmt::format(R"({{"status":"x","Type":"container","Action":"{}","Actor":{{"ID":"{}",)"
                     R"("Attributes":{{"exitCode":"3"}}}},"timeNano":1796125875500736026}})"
                     "\n",
                     action, id);
}

TEST(DockerEvents, TellsStateChangesFromTheRest) {
  struct Case {
    std::string line;
    Ids want;
  };
  for (const Case& c : {
           Case{event("start", "a"), {"a"}},
           Case{event("die", "a"), {"a"}},
           Case{event("oom", "a"), {"a"}},
           Case{event("destroy", "a"), {"a"}},
           Case{event("create", "a"), {"a"}},
           Case{event("exec_start: sh -c true", "a"), {}},
           Case{event("attach", "a"), {}},
           Case{event("health_status: healthy", "a"), {"a"}},
           Case{R"({"Type":"image","Action":"create","Actor":{"ID":"i"}})"
                "\n",
                {}},
           Case{"\n", {}},
           Case{"\r\n", {}},
           Case{"not json\n", {""}},  // something happened: look
           Case{"[1]\n", {""}},
           Case{R"({"Type":"container","Action":"die"})"
                "\n",
                {""}},
       }) {
    DockerEvents events;
    EXPECT_EQ(events.feed(c.line), c.want) << c.line;
  }
}

TEST(DockerEvents, PiecesMayEndAnywhere) {
  const std::string text = event("start", "a") + event("attach", "a") + event("die", "b");
  for (std::size_t size = 1; size <= text.size(); ++size) {
    DockerEvents events;
    Ids ids;
    for (std::size_t at = 0; at < text.size(); at += size) {
      for (std::string& id : events.feed(std::string_view(text).substr(at, size))) {
        ids.push_back(std::move(id));
      }
    }
    EXPECT_EQ(ids, (Ids{"a", "b"})) << size;
  }
}

TEST(DockerEvents, AnEventCountsOnlyWithItsLineEnd) {
  DockerEvents events;
  const std::string text = event("die", "a");
  EXPECT_TRUE(events.feed(text.substr(0, text.size() - 1)).empty());
  EXPECT_EQ(events.feed("\n"), Ids{"a"});
}

TEST(DockerEvents, SkipsALineThatIsTooLongAndReadsOn) {
  DockerEvents events;
  Ids ids;
  const std::string piece(64 * 1024, 'x');
  for (std::size_t fed = 0; fed <= 2 * DockerEvents::kLineBytesMax; fed += piece.size()) {
    for (std::string& id : events.feed(piece)) ids.push_back(std::move(id));
  }
  EXPECT_EQ(ids, Ids{""});
  EXPECT_EQ(events.feed("\n" + event("die", "b")), Ids{"b"});
}

}  // namespace
}  // namespace cotenant::adapters
