// The two files of a saved tree that are none of the host's: what libibverbs answered, and the settings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/weft/save_tree/file_record.h"
#include "bench/weft/save_tree/substitutes.h"
#include "bench/weft/save_tree/verbs_answers.h"
#include "common/settings/settings.h"
#include "net_plugin/verbs/verbs.h"

namespace weft::save_tree {

// Adds them to a tree, with stand-ins for what is personal.
void add_saved_files(Entries& entries, const VerbsAnswers& answers, const settings::Loaded& loaded,
                     Substitutes& substitutes);

bool is_saved_tree(const std::string& root);
// libibverbs as it was there; the outer error: the file can't be read, the inner one: it could not be loaded there.
Result<Result<std::unique_ptr<verbs::Verbs>>> recorded_verbs(const std::string& root);
std::vector<settings::ConfFile> recorded_settings(const std::string& root);

}  // namespace weft::save_tree
