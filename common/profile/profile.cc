#include "common/profile/profile.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>

#include "common/json/strict.h"
#include "common/profile/sha256.h"
#include "common/text/format.h"

namespace weft::profile {
namespace {

constexpr const char* kCollectives[] = {"broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"};
constexpr const char* kAlgorithms[] = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr const char* kProtocols[] = {"ll", "ll128", "simple"};
constexpr std::int64_t kSchema = 1;
// NCCL keeps the number in a signed byte.
constexpr std::int64_t kMostChannels = 127;

template <class Word, std::size_t Count>
Word read_word(json::Fields& fields, std::string_view key, const char* const (&words)[Count]) {
  const std::vector<std::string> allowed(std::begin(words), std::end(words));
  const std::string given = fields.word(key, json::required, allowed);
  const auto found = std::find(allowed.begin(), allowed.end(), given);
  return Word(found == allowed.end() ? 0 : found - allowed.begin());
}

// { "from": 0, "to": 65536 }, both inclusive and optional.
Interval read_interval(json::Fields& fields, std::string_view key) {
  Interval interval;
  auto child = fields.object(key);
  if (!child) return interval;
  interval.low = std::uint64_t(child->integer("from", 0, {.low = 0}));
  if (child->has("to")) interval.high = std::uint64_t(child->integer("to", json::required, {.low = 0}));
  if (interval.low > interval.high) {
    fields.problem(key, text::format("from {} to {} is empty", interval.low, interval.high),
                   "\"from\" must not be larger than \"to\"");
  }
  child->done();
  return interval;
}

Rule read_rule(json::Fields fields, std::size_t index) {
  Rule rule;
  rule.name = text::format("rules[{}]", index);
  rule.collective = read_word<Collective>(fields, "collective", kCollectives);
  rule.bytes = read_interval(fields, "bytes");
  rule.ranks = read_interval(fields, "ranks");
  rule.nodes = read_interval(fields, "nodes");
  rule.algorithm = read_word<Algorithm>(fields, "algorithm", kAlgorithms);
  rule.protocol = read_word<Protocol>(fields, "protocol", kProtocols);
  rule.channels = int(fields.integer("channels", 0, {.low = 0, .high = kMostChannels}));
  fields.text("comment", "");
  fields.done();
  return rule;
}

// Two rules that could both decide would make the order in the file decide, which nobody expects.
void check_overlaps(const Profile& profile, json::Fields& fields) {
  for (std::size_t i = 0; i < profile.rules.size(); i++) {
    for (std::size_t j = i + 1; j < profile.rules.size(); j++) {
      const Rule& left = profile.rules[i];
      const Rule& right = profile.rules[j];
      if (left.collective != right.collective || !left.bytes.meets(right.bytes) || !left.ranks.meets(right.ranks) ||
          !left.nodes.meets(right.nodes)) {
        continue;
      }
      fields.problem(right.name,
                     text::format("overlaps with {}: both decide {} of {} bytes", left.name, name(right.collective),
                                  std::max(left.bytes.low, right.bytes.low)),
                     "make their bytes, ranks or nodes disjoint");
    }
  }
}

}  // namespace

const char* name(Collective collective) {
  return kCollectives[int(collective)];
}
const char* name(Algorithm algorithm) {
  return kAlgorithms[int(algorithm)];
}
const char* name(Protocol protocol) {
  return kProtocols[int(protocol)];
}

Result<Profile> parse_profile(const std::string& text, const std::string& path) {
  auto document = json::parse(text, path);
  if (!document) return document.take_error();
  json::Problems problems;
  json::Fields fields(*document, path, problems);
  Profile profile;
  profile.path = path;
  profile.digest = sha256(text);
  fields.integer("schema", json::required, {.low = kSchema, .high = kSchema});
  profile.description = fields.text("description", "");
  if (auto provenance = fields.object("provenance")) {
    for (const char* key : {"nccl", "gpu", "fabric", "date", "measured_by"})
      provenance->text(key, "");
    provenance->done();
  }
  for (json::Fields& rule : fields.objects("rules"))
    profile.rules.push_back(read_rule(rule, profile.rules.size()));
  check_overlaps(profile, fields);
  fields.done();
  if (auto error = problems.error()) return *error;
  return profile;
}

Result<Profile> read_profile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return system_error("cannot open", errno, path);
  std::ostringstream content;
  content << file.rdbuf();
  if (file.bad()) return system_error("cannot read", errno, path);
  return parse_profile(content.str(), path);
}

}  // namespace weft::profile
