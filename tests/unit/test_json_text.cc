#include "base/json_text.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

namespace cohabit {
namespace {

using Json = nlohmann::ordered_json;

TEST_CASE("bytes that are no UTF-8 stand in JSON as digits, and come back") {
  CHECK(json_of("/opt/d\xc3\xa9j\xc3\xa0") == Json("/opt/d\xc3\xa9j\xc3\xa0"));
  CHECK(json_of("/tmp/\xff").dump() == R"({"hex":"2f746d702fff"})");
  for (const char* bytes : {"", "plain", "/tmp/\xff", "\xed\xa0\x80", "\x01\xf4\x90\x80\x80"})
    CHECK(bytes_of(Json::parse(json_of(bytes).dump())) == std::string(bytes));
  CHECK(json_of(std::vector<std::string>{"a", "\x80"}).dump() == R"(["a",{"hex":"80"}])");
}

TEST_CASE("what is neither a text nor digits gives no bytes") {
  CHECK(bytes_of(Json::parse(R"({"hex":"2F74"})")) == "/t");
  for (const char* json : {"1", "null", "[]", "{}", R"({"hex":"2"})", R"({"hex":"0g"})",
                           R"({"hex":12})", R"({"hex":"00","more":1})", R"({"other":"00"})"})
    CHECK_FALSE(bytes_of(Json::parse(json)));
}

}  // namespace
}  // namespace cohabit
