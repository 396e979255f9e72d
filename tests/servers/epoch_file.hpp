// The file `oocarray-epoch` in the folder of a server (folder_epoch.hpp), changed as another boot of the machine would.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace ooc::testing {

inline std::string epoch_text(const std::filesystem::path& folder) {
  std::ifstream in(folder / "oocarray-epoch");
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void set_epoch_text(const std::filesystem::path& folder, const std::string& text) {
  std::ofstream(folder / "oocarray-epoch") << text;
}

/// No server runs there: what the last one noted becomes that of a boot that has ended.
inline void pretend_to_restart(const std::filesystem::path& folder) {
  std::string text = epoch_text(folder);
  const auto at = text.find("\nboot ");
  if (at == text.npos) throw std::runtime_error("no boot in the file of the epoch: " + text);
  const auto first = at + 6, end = text.find('\n', first);
  text.replace(first, end - first, std::string(end - first, '1'));
  set_epoch_text(folder, text);
}

/// As if the last server had been killed.
inline void take_away_synced(const std::filesystem::path& folder) {
  const std::string text = epoch_text(folder), last = "\nsynced\n";
  if (!text.ends_with(last)) throw std::runtime_error("not synced: " + text);
  set_epoch_text(folder, text.substr(0, text.size() - last.size() + 1));
}

}  // namespace ooc::testing
