#include "bench/weft/demo/page.h"

#include <algorithm>

#include "common/text/format.h"

namespace weft::demo {
namespace {

// Okabe and Ito's orange and blue: told apart with every common colour blindness.
constexpr const char* kStyle = R"(
:root { --ib: #e69f00; --weft: #0072b2; --ink: #1d2430; --soft: #5b6675; --page: #ffffff; --card: #f4f6f9; --line: #d5dbe3; }
@media (prefers-color-scheme: dark) { :root { --ib: #f0b23c; --weft: #56b4e9; --ink: #e8ecf2; --soft: #a3adba; --page: #12161c; --card: #1b212a; --line: #343c48; } }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); }
h1 { font-size: 1.7rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin-top: 2rem; } h3 { font-size: 1rem; margin: .3rem 0; }
p.lead { font-size: 1.1rem; } .soft { color: var(--soft); }
section { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: 1rem 1.2rem; margin: 1rem 0; }
.key span { display: inline-block; width: .8rem; height: .8rem; border-radius: .2rem; margin: 0 .3rem 0 .9rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font: 13px system-ui, sans-serif; } svg .soft { fill: var(--soft); }
.big { font-size: 2rem; font-weight: 700; } table { border-collapse: collapse; width: 100%; } td, th { text-align: right; padding: .2rem .5rem; border-bottom: 1px solid var(--line); }
td:first-child, th:first-child { text-align: left; } .scroll { overflow-x: auto; }
)";

std::string escape(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '&')
      out += "&amp;";
    else if (letter == '<')
      out += "&lt;";
    else if (letter == '>')
      out += "&gt;";
    else
      out += letter;
  }
  return out;
}

// The run whose share is the median: what one sees when nothing special happens.
const Run& typical(const std::vector<Run>& runs) {
  std::vector<const Run*> sorted;
  for (const Run& run : runs)
    sorted.push_back(&run);
  std::sort(sorted.begin(), sorted.end(), [](const Run* left, const Run* right) { return left->share < right->share; });
  return *sorted[sorted.size() / 2];
}

// One bar a spine; the dashed line is an even spread.
std::string spine_bars(const Run& run, const char* colour, const std::string& title) {
  double most = 1, sum = 0;
  for (const auto& [name, bytes] : run.spine_bytes) {
    most = std::max(most, bytes);
    sum += bytes;
  }
  const double even = sum / std::max<double>(1, double(run.spine_bytes.size())),
               scale = 300 / std::max(most, even * 1.05);
  const int height = int(run.spine_bytes.size()) * 34 + 16;
  std::string out =
      text::format("<div><h3>{}</h3><svg viewBox=\"0 0 420 {}\" role=\"img\" aria-label=\"bytes per spine\">",
                   escape(title), height);
  int y = 6;
  for (const auto& [name, bytes] : run.spine_bytes) {
    out += text::format(
        "<text x=\"0\" y=\"{}\">{}</text><rect x=\"34\" y=\"{}\" width=\"{:.1f}\" height=\"22\" rx=\"3\" "
        "fill=\"var({})\"/>"
        "<text x=\"346\" y=\"{}\" class=\"soft\">{:.1f} MB</text>",
        y + 16, name, y, std::max(1.0, bytes * scale), colour, y + 16, bytes / 1e6);
    y += 34;
  }
  return out + text::format(
                   "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1}\" stroke=\"var(--soft)\" "
                   "stroke-dasharray=\"4 4\"/></svg></div>",
                   34 + even * scale, height - 8);
}

// Two bars a seed: share of what the fabric carries.
std::string seed_bars(const Comparison& one) {
  const int row = 48, height = int(one.weft.size()) * row + 24;
  std::string out = text::format("<svg viewBox=\"0 0 640 {}\" role=\"img\" aria-label=\"share per run\">", height);
  for (std::size_t i = 0; i < one.weft.size(); i++) {
    const int y = int(i) * row + 4;
    out += text::format("<text x=\"0\" y=\"{}\">seed {}</text>", y + 24, one.weft[i].seed);
    int bar = y;
    for (const auto& [run, colour] : {std::pair{&one.ib[i], "--ib"}, std::pair{&one.weft[i], "--weft"}}) {
      out += text::format(
          "<rect x=\"90\" y=\"{}\" width=\"{:.1f}\" height=\"17\" rx=\"3\" fill=\"var({})\"/><text x=\"484\" "
          "y=\"{}\" class=\"soft\">"
          "{:.0f} % · {:.0f} Mbit/s</text>",
          bar, 380 * run->share, colour, bar + 13, 100 * run->share, run->busbw_mbps);
      bar += 20;
    }
  }
  return out + text::format(
                   "<line x1=\"470\" x2=\"470\" y1=\"0\" y2=\"{}\" stroke=\"var(--soft)\" stroke-dasharray=\"4 4\"/>"
                   "<text x=\"380\" y=\"{}\" class=\"soft\">100 % = the links are full</text></svg>",
                   height - 20, height - 4);
}

std::string section(const Comparison& one) {
  const statistics::Estimate known = ratio(one);
  std::string out = text::format(
      "<section><h2>{} fabric</h2><p>{}</p><p><span class=\"big\">{:.2f}×</span> NCCL's own IB transport in the median "
      "of {} hash "
      "seeds (95 % interval {:.2f} to {:.2f}), {} of {} MiB, on the emulated fabric.</p>",
      escape(one.fabric.name), escape(one.fabric.text), known.median, one.weft.size(), known.low, known.high,
      escape(one.op), one.bytes >> 20);
  out += "<h3>Bytes per spine in a typical run</h3><div class=\"figures\">";
  out += spine_bars(typical(one.ib), "--ib", "before: NCCL's IB transport") +
         spine_bars(typical(one.weft), "--weft", "after: Weft");
  out +=
      "</div><p class=\"soft\">The dashed line is an even spread. A flow that shares a spine with another waits for "
      "it; a spine without flows is idle.</p>";
  out += "<h3>Every run</h3>" + seed_bars(one);
  return out + "</section>";
}

std::string summary(const std::vector<Comparison>& comparisons) {
  std::string out =
      "<div class=\"scroll\"><table><tr><th>fabric</th><th>transport</th><th>bus bandwidth, "
      "median</th><th>range</th><th>share</th></tr>";
  for (const Comparison& one : comparisons) {
    for (const bool is_weft : {false, true}) {
      const std::vector<Run>& runs = is_weft ? one.weft : one.ib;
      const statistics::Summary bandwidth = statistics::summary(bandwidths(runs));
      out +=
          text::format("<tr><td>{}</td><td>{}</td><td>{:.1f} Mbit/s</td><td>{:.1f} – {:.1f}</td><td>{:.0f} %</td></tr>",
                       escape(one.fabric.name), is_weft ? "Weft" : "NCCL's IB", bandwidth.median, bandwidth.min,
                       bandwidth.max, 100 * statistics::median(shares(runs)));
    }
  }
  return out + "</table></div>";
}

}  // namespace

std::string page(const std::vector<Comparison>& comparisons, const std::vector<std::uint64_t>& seeds) {
  std::string seed_list;
  for (const std::uint64_t seed : seeds)
    seed_list += (seed_list.empty() ? "" : ", ") + std::to_string(seed);
  std::string out =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">"
      "<title>Weft: NCCL over every path</title><style>";
  out += kStyle;
  out +=
      "</style></head><body><h1>NCCL over every path of the fabric</h1>"
      "<p class=\"lead\">Stock NCCL on an emulated leaf–spine network, once with its own IB transport and once with "
      "the Weft plugin. Everything else is equal: "
      "hosts, links, hash seed, software NIC.</p>"
      "<p class=\"key\"><span style=\"background:var(--ib)\"></span>NCCL's IB transport<span "
      "style=\"background:var(--weft)\"></span>Weft</p>";
  out += summary(comparisons);
  for (const Comparison& one : comparisons)
    out += section(one);
  out += text::format(
      "<p class=\"soft\">Figures taken on the emulated fabric (network namespaces, software RoCEv2 NICs, Linux ECMP "
      "with hash seeds {}): they show how "
      "traffic is spread, not how fast a real NIC is. Share: application bytes ÷ time ÷ what the links carry as "
      "payload.</p></body></html>\n",
      seed_list);
  return out;
}

}  // namespace weft::demo
