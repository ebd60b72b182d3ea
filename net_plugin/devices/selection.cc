#include "net_plugin/devices/selection.h"

#include <algorithm>
#include <charconv>

#include "common/text/format.h"
#include "common/text/nearest.h"

namespace weft::devices {
namespace {

bool matches(const SelectionToken& token, bool whole, const std::string& device, int port) {
  const bool name = whole ? device == token.name : device.rfind(token.name, 0) == 0;
  return name && (token.port < 0 || token.port == port);
}

Error wrong(const std::string& what, std::string hint) {
  return Error{what, "NCCL_IB_HCA", 0, std::move(hint)};
}

Result<SelectionToken> parse_token(const std::string& text, std::size_t place, const std::string& modifiers) {
  if (text.empty()) return wrong(text::format("token {} is empty", place), "form: [^][=]name[:port],…");
  if (text[0] == '^' || text[0] == '=') {
    return wrong(
        text::format("\"^\" and \"=\" are allowed only at the start of the value (token {}: \"{}\")", place, text),
        text::format("write the modifiers once: \"{}{}…\"", modifiers, text.substr(text.find_first_not_of("^="))));
  }
  SelectionToken token;
  const std::size_t colon = text.find(':');
  token.name = text.substr(0, colon);
  if (colon == std::string::npos) return token;
  // NCCL 2.30 allows name:port:rail:plane; rail and plane come with the rails.
  const std::string number = text.substr(colon + 1, text.find(':', colon + 1) - colon - 1);
  const char* end = number.data() + number.size();
  const auto [stopped, problem] = std::from_chars(number.data(), end, token.port);
  if (problem != std::errc() || stopped != end || token.port < 1 || token.port > 255) {
    return wrong(text::format("token {} (\"{}\"): the port is not a number from 1 to 255", place, text), {});
  }
  return token;
}

}  // namespace

bool Selection::takes(const std::string& device, int port) const {
  if (tokens.empty()) return true;
  const bool any = std::any_of(tokens.begin(), tokens.end(),
                               [&](const SelectionToken& token) { return matches(token, whole_names, device, port); });
  return any != exclude;
}

Result<Selection> parse_selection(const std::string& text) {
  Selection selection;
  std::string rest = text, modifiers;
  if (!rest.empty() && rest[0] == '^') {
    selection.exclude = true;
    modifiers += '^';
    rest.erase(0, 1);
  }
  if (!rest.empty() && rest[0] == '=') {
    selection.whole_names = true;
    modifiers += '=';
    rest.erase(0, 1);
  }
  if (rest.empty() && text.empty()) return selection;
  std::size_t place = 1;
  while (true) {
    const std::size_t comma = rest.find(',');
    auto token = parse_token(rest.substr(0, comma), place++, modifiers);
    if (!token) return token.take_error();
    selection.tokens.push_back(token.take());
    if (comma == std::string::npos) return selection;
    rest.erase(0, comma + 1);
  }
}

std::vector<std::string> surprises(const Selection& selection, const std::vector<PortName>& ports) {
  std::vector<std::string> out;
  if (selection.whole_names) return out;
  for (const SelectionToken& token : selection.tokens) {
    std::vector<std::string> matched;
    bool itself = false;
    for (const PortName& port : ports) {
      if (!matches(token, false, port.device, port.port)) continue;
      itself = itself || port.device == token.name;
      if (std::find(matched.begin(), matched.end(), port.device) == matched.end()) matched.push_back(port.device);
    }
    if (itself && matched.size() > 1) {
      out.push_back(
          text::format("NCCL_IB_HCA token \"{}\" is a prefix and matched {}; write \"={}\" for an exact match",
                       token.name, text::join(matched), token.name));
    }
  }
  return out;
}

std::optional<Error> unmatched(const Selection& selection, const std::vector<PortName>& ports) {
  if (selection.exclude) return std::nullopt;
  for (const SelectionToken& token : selection.tokens) {
    const bool any = std::any_of(ports.begin(), ports.end(), [&](const PortName& port) {
      return matches(token, selection.whole_names, port.device, port.port);
    });
    if (any) continue;
    std::vector<std::string> names;
    for (const PortName& port : ports)
      names.push_back(text::format("{}:{}", port.device, port.port));
    return wrong(text::format("\"{}{}\" matches no RoCE port", token.name,
                              token.port < 0 ? "" : text::format(":{}", token.port)),
                 "have: " + (names.empty() ? "none" : text::join(names)));
  }
  return std::nullopt;
}

}  // namespace weft::devices
