// See elf.h. Every offset is checked against what was read; a file that lies about itself gives fewer facts.
#include "cli/elf.h"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace gpupool::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostSymbols = std::size_t{1} << 20;

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

class File {
 public:
  explicit File(const std::string& path) : in_(path, std::ios::binary) {
    std::error_code error;
    size_ = fs::file_size(path, error);
    if (error) size_ = 0;
  }

  template <class T>
  bool read(std::uint64_t offset, T* out, std::size_t count) {
    const std::uint64_t bytes = count * sizeof(T);
    if (offset > size_ || bytes > size_ - offset) return false;
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    in_.read(reinterpret_cast<char*>(out), static_cast<std::streamsize>(bytes));
    return static_cast<std::uint64_t>(in_.gcount()) == bytes;
  }

  std::uint64_t size() const { return size_; }

 private:
  std::ifstream in_;
  std::uint64_t size_ = 0;
};

std::uint16_t own_machine() {
  Header header{};
  File self("/proc/self/exe");
  return self.read(0, &header, 1) ? header.e_machine : std::uint16_t{EM_NONE};
}

std::string text_at(const std::vector<char>& table, std::size_t offset) {
  if (offset >= table.size()) return {};
  return {table.data() + offset, strnlen(table.data() + offset, table.size() - offset)};
}

void find_symbols(File& file, const Header& header, ElfFacts& facts) {
  std::vector<Section> sections(header.e_shnum);
  if (header.e_shentsize != sizeof(Section) || !file.read(header.e_shoff, sections.data(), sections.size())) return;
  for (const Section& section : sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
    const Section& texts = sections[section.sh_link];
    if (section.sh_size > file.size() || texts.sh_size > file.size()) continue;
    std::vector<Symbol> symbols(std::min<std::size_t>(section.sh_size / sizeof(Symbol), kMostSymbols));
    std::vector<char> table(texts.sh_size);
    if (!file.read(section.sh_offset, symbols.data(), symbols.size()) ||
        !file.read(texts.sh_offset, table.data(), table.size()))
      continue;
    for (const Symbol& symbol : symbols) {
      if (symbol.st_name == 0) continue;
      (symbol.st_shndx == SHN_UNDEF ? facts.imports : facts.exports).push_back(text_at(table, symbol.st_name));
    }
  }
}

}  // namespace

ElfFacts elf_facts(const std::string& path) {
  ElfFacts facts;
  File file(path);
  Header header{};
  unsigned char ident[EI_NIDENT] = {};
  if (!file.read(0, ident, EI_NIDENT) || std::memcmp(ident, ELFMAG, SELFMAG) != 0) return facts;
  facts.is_elf = true;
  constexpr unsigned char kOwnClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (ident[EI_CLASS] != kOwnClass || !file.read(0, &header, 1) || header.e_machine != own_machine()) {
    facts.other_machine = true;
    return facts;
  }
  std::vector<Segment> segments(header.e_phnum);
  if (header.e_phentsize != sizeof(Segment) || !file.read(header.e_phoff, segments.data(), segments.size()))
    return facts;
  for (const Segment& segment : segments) {
    if (segment.p_type != PT_INTERP || segment.p_filesz == 0 || segment.p_filesz > 4096) continue;
    std::vector<char> text(segment.p_filesz);
    if (file.read(segment.p_offset, text.data(), text.size())) facts.interpreter = text_at(text, 0);
  }
  facts.is_shared = header.e_type == ET_DYN;
  find_symbols(file, header, facts);
  return facts;
}

std::string script_interpreter(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  char head[256] = {};
  in.read(head, sizeof head - 1);
  std::string_view line{head};
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') == std::string_view::npos ? std::string_view::npos : line.find('\n') - 2);
  std::vector<std::string> words;
  for (std::size_t begin = 0; (begin = line.find_first_not_of(" \t\r", begin)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.emplace_back(line.substr(begin, end - begin));
    begin = end;
  }
  if (words.empty()) return {};
  if (!words.front().ends_with("/env")) return words.front();
  const auto named = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
    return !word.starts_with('-') && word.find('=') == std::string::npos;
  });
  return named == words.end() ? words.front() : *named;
}

std::string find_program(const std::string& program) {
  const auto usable = [](const std::string& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0;
  };
  if (program.find('/') != std::string::npos) return usable(program) ? fs::absolute(program).string() : std::string{};
  const char* const list = std::getenv("PATH");
  std::string_view rest = list ? list : "/usr/bin:/bin";
  for (;;) {
    const std::size_t colon = rest.find(':');
    const fs::path folder{rest.substr(0, colon)};
    const std::string path =
        fs::absolute((folder.empty() ? fs::path{"."} : folder) / program).lexically_normal().string();
    if (usable(path)) return path;
    if (colon == std::string_view::npos) return {};
    rest.remove_prefix(colon + 1);
  }
}

}  // namespace gpupool::cli
