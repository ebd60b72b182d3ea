// The weft command. Exit codes: 0 done, 1 it ran and something failed, 2 wrong usage or input, 3 the machine lacks
// something.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "bench/weft/demo/demo_command.h"
#include "bench/weft/devices/devices_command.h"
#include "bench/weft/figures/foundation.h"
#include "common/command_line/command_line.h"
#include "common/settings/settings.h"
#include "common/text/format.h"

namespace weft {
namespace {

void add_demo(CLI::App& app, demo::DemoOptions& options) {
  app.add_option("--seeds", options.seeds, "Hash seeds of the fabric, at least five for an interval worth reading")
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the figures for programs to this file (- is standard output)");
  app.add_option("--html", options.html, "Write the page with the pictures to this file")->capture_default_str();
  app.add_option("--rig", options.rig, "The rig command (default: next to this one)");
}

void add_figures(CLI::App& app, figures::FigureOptions& options) {
  app.add_option("list", options.list, "Which list of points: foundation, data-plane")->required();
  options.seeds = demo::kDefaultSeeds;
  app.add_option("--seeds", options.seeds, "Hash seeds of the fabric")->capture_default_str();
  app.add_option("--json", options.json, "Write the points for programs to this file (- is standard output)");
  app.add_option("--rig", options.rig, "The rig command (default: next to this one)");
  app.add_flag("--long", options.thorough,
               "What takes very long as well (data-plane: NCCL's IB transport in ten settings)");
}

void add_devices(CLI::App& app, devices_command::Options& options) {
  app.add_option("--json", options.json, "Write it for programs to this file (- is standard output)");
  app.add_option("--save-tree", options.save_tree,
                 "Write what the choice is made from to this new tar archive, personal data left out: unpacked to DIR, "
                 "WEFT_SYSFS_ROOT=DIR weft devices makes the same choice elsewhere (docs/net-plugin.md)");
}

// Values in effect here, with where each comes from.
int print_settings(bool markdown) {
  if (markdown) {
    std::fputs(settings::markdown().c_str(), stdout);
    return demo::kDone;
  }
  const settings::Loaded loaded = settings::load();
  for (const settings::Row& row : settings::table()) {
    const settings::Given* given = loaded.find(row.name);
    std::fputs(text::format("{:<30} {:<20} {}\n", row.name, row.get(loaded.settings), given ? given->source : "default")
                   .c_str(),
               stdout);
  }
  for (const std::string& warning : loaded.warnings)
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
  for (const Error& error : loaded.errors)
    std::fprintf(stderr, "error: %s\n", error.text().c_str());
  return loaded.errors.empty() ? demo::kDone : demo::kUsage;
}

int run(int count, char** arguments) {
  CLI::App app{
      "Weft: NCCL over every path of a RoCE fabric.\n"
      "Exit codes: 0 done, 1 it ran and something failed, 2 wrong usage or input, 3 the machine lacks something.",
      "weft"};
  app.set_version_flag("--version", std::string("weft " WEFT_VERSION));
  app.require_subcommand(1);
  demo::DemoOptions demo_options;
  CLI::App* demo = app.add_subcommand(
      "demo", "Stock NCCL on two emulated fabrics: its own IB transport against Weft (3 to 4 minutes)");
  add_demo(*demo, demo_options);
  bool markdown = false;
  CLI::App* settings = app.add_subcommand("settings", "Print the settings in effect here");
  settings->add_flag("--markdown", markdown, "Print the page docs/settings.md instead");
  devices_command::Options devices_options;
  CLI::App* devices =
      app.add_subcommand("devices", "Print the NIC ports that the net plugin would use here, and why not the others");
  add_devices(*devices, devices_options);
  figures::FigureOptions figure_options;
  CLI::App* figures = app.add_subcommand("figures", "Measure what the project promises (scripts/figures)");
  add_figures(*figures, figure_options);
  if (const auto code = command_line::parse(app, count, arguments, demo::kUsage)) return *code;
  if (demo->parsed()) return demo::run_demo(demo_options);
  if (figures->parsed()) return figures::run_figures(figure_options);
  if (devices->parsed()) return devices_command::run(devices_options);
  return print_settings(markdown);
}

}  // namespace
}  // namespace weft

int main(int count, char** arguments) {
  return weft::run(count, arguments);
}
