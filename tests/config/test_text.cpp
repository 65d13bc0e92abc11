// Values as text, and quoting.
#include "config/text.h"
#include "tests/catch.h"

using namespace gpupool;

TEST_CASE("sizes print exactly, in the largest unit that divides them", "[config]") {
  CHECK(to_text(Bytes{0}) == "0");
  CHECK(to_text(Bytes{100}) == "100B");
  CHECK(to_text(Bytes{8_GiB}) == "8GiB");
  CHECK(to_text(Bytes{1536_MiB}) == "1536MiB");
  CHECK(to_text(Bytes{100'000'000'000}) == "100GB");
  CHECK(to_text(Bytes{1'000'001}) == "1000001B");
  CHECK(to_text(Share{920'000'000}) == "92%");
  CHECK(to_text(Share{333'333'333}) == "33.3333333%");
  CHECK(to_text(GrowthStep{0, 1050}) == "1.05x");
  CHECK(to_text(HandleSize{}) == "auto");
  CHECK(to_text(Milliseconds{1500}) == "1500ms");
  CHECK(to_text(Milliseconds{2000}) == "2s");
  CHECK(to_text(ReuseKind::quiescent) == "quiescent");
  CHECK(to_text(NameList{"a", "b*"}) == "a,b*");
}

TEST_CASE("sizes for people are rounded down to a decimal", "[config]") {
  CHECK(readable(512) == "512 bytes");
  CHECK(readable(8_GiB) == "8 GiB");
  CHECK(readable(8_GiB - 1) == "7.9 GiB");
  CHECK(readable(1536_MiB) == "1.5 GiB");
}

TEST_CASE("quoted texts are one printable line", "[config][case-35]") {
  CHECK(in_quotes("4X") == "\"4X\"");
  CHECK(in_quotes("a\"b\\c\n\t\r\x1b\xff") == R"("a\"b\\c\n\t\x0d\x1b\xff")");
  CHECK(escaped(std::string_view{"\0", 1}) == "\\x00");
  CHECK(escaped(std::string(200, 'a')) == std::string(kMostQuoted, 'a') + "...");
}
