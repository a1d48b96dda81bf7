// The `pagoda` command: registers the commands and turns their outcome into an exit code.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/bench.hpp"
#include "cli/check.hpp"
#include "cli/emulate.hpp"
#include "cli/explain.hpp"
#include "cli/info.hpp"
#include "cli/replay/replay_command.hpp"
#include "cli/run.hpp"
#include "cli/terminal.hpp"

namespace {

// A stub, so that --help lists the command in every build.
void add_missing_emulate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("emulate", "Not available: this build has no emulator");
  command->allow_extras();
  command->callback([] {
    pagoda::cli::fail(
        "this build has no emulator; configure it with -DPAGODA_BUILD_EMULATOR=ON, or call it by "
        "`./dev pagoda emulate`");
  });
}

}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what escapes the handlers below ends the program
int main(int argc, char** argv) {
  pagoda::cli::add_emulated_backends();
  CLI::App app{"Pagoda: paged flash attention for LLM inference", "pagoda"};
  app.require_subcommand(1);
  app.set_version_flag("--version", PAGODA_VERSION);
  app.footer(
      "'pagoda COMMAND --help' explains one command. Exit codes: 0 success, 1 a check "
      "failed, 2 the call is wrong.");
  pagoda::cli::add_info_command(app);
  pagoda::cli::add_check_command(app);
  pagoda::cli::add_run_command(app);
  pagoda::cli::add_explain_command(app);
  pagoda::cli::add_replay_command(app);
  if (pagoda::cli::has_emulator()) {
    pagoda::cli::add_emulate_command(app);
  } else {
    add_missing_emulate_command(app);
  }
  pagoda::cli::add_bench_command(app);
  try {
    const auto is_named = [&](CLI::App* command) { return command->check_name(argv[1]); };
    if (argc > 1 && *argv[1] != '-' && app.get_subcommands(is_named).empty()) {
      pagoda::cli::fail(std::string("no command '") + argv[1] + "'; 'pagoda --help' lists them");
    }
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& error) {  // a command set its exit code
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : pagoda::cli::kExitUsage;
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "pagoda: error: %s\n", error.what());
    return pagoda::cli::kExitFailed;
  }
  return 0;
}
