// See diagnostic.h.
#include "config/diagnostic.h"

#include "config/text.h"

namespace gpupool {
namespace {
constexpr std::size_t kLongestPath = 4096;
}

std::string to_text(const Source& source) {
  switch (source.kind) {
    case SourceKind::none:
      return {};
    case SourceKind::default_value:
      return "default";
    case SourceKind::file:
    case SourceKind::environment:
      break;
  }
  std::string text = escaped(source.name, kLongestPath);
  if (source.line > 0) text += ":" + std::to_string(source.line) + ":" + std::to_string(source.column);
  return text;
}

std::string Diagnostic::message() const {
  std::string text = to_text(source);
  if (!key.empty()) text += (text.empty() ? "" : ": ") + escaped(key);
  text += (text.empty() ? "" : ": ") + problem + (ignored ? " and is ignored" : "");
  if (!nearest.empty()) text += "; did you mean " + nearest + "?";
  if (!used.empty()) text += "; using " + used;
  return text;
}

}  // namespace gpupool
