// Which wheel of a version is taken, and where its members go.
#include <doctest/doctest.h>

#include "actions/check/plan.h"
#include "actions/check/wheel_tags.h"
#include "base/addresses.h"
#include "facts/wheels/web_file.h"

using namespace cohabit;
using check::best_wheel;

namespace {
const check::TagTarget kTarget = {312, "x86_64", 36};
}

TEST_CASE("the best wheel: interpreter and ABI before platform, and no newer glibc than is there") {
  const std::vector<std::string> wheels = {
      "c-46.0.1-cp311-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
      "c-46.0.1-cp311-abi3-manylinux_2_34_x86_64.whl",
      "c-46.0.1-cp38-abi3-manylinux_2_34_x86_64.whl",
      "c-46.0.1-cp311-abi3-manylinux_2_28_x86_64.whl",
  };
  CHECK(best_wheel(wheels, kTarget) == 1);
  CHECK(best_wheel(wheels, {312, "x86_64", 31}) == 3);
  CHECK(best_wheel(wheels, {310, "x86_64", 36}) == 2);
  CHECK(best_wheel(wheels, {312, "aarch64", 36}) == std::nullopt);
  CHECK(best_wheel({"a-1-py3-none-any.whl", "a-1-cp312-cp312-linux_x86_64.whl"}, kTarget) == 1);
  CHECK(best_wheel({"a-1-cp312-cp312-musllinux_1_2_x86_64.whl", "a-1-py2.py3-none-any.whl"},
                   kTarget) == 1);
  CHECK(best_wheel({"a-1-1-py3-none-any.whl", "a-1-2-py3-none-any.whl"}, kTarget) == 1);
  CHECK(best_wheel({"a-1-cp313-cp313-manylinux_2_17_x86_64.whl", "a.tar.gz", ""}, kTarget) ==
        std::nullopt);
}

TEST_CASE("uv's plan: what comes, what goes, what is replaced") {
  const check::Plan plan = check::read_uv_lines(
      "Resolved 3 packages in 12ms\nWould install 2 packages\n - numpy==2.1.0\n + numpy==1.26.4\n"
      " - old==1\n + one==1.0 (from file:///tmp/one-1.0-py3-none-any.whl)\n ~ same==2\n");
  REQUIRE(plan.arrivals.size() == 3);
  CHECK(plan.arrivals[0].name == "numpy");
  CHECK(plan.arrivals[1].version == "1.0");
  CHECK(plan.arrivals[1].address == "file:///tmp/one-1.0-py3-none-any.whl");
  CHECK(plan.arrivals[2].name == "same");
  REQUIRE(plan.departures.size() == 1);
  CHECK(plan.departures[0].name == "old");
}

TEST_CASE("pip's report: what is not one is said to be none") {
  CHECK_FALSE(check::read_pip_report(""));
  CHECK_FALSE(check::read_pip_report("{\"install\": 3}"));
  CHECK_FALSE(check::read_pip_report("{\"install\": [{}]}"));
  CHECK_FALSE(check::read_pip_report("{\"install\": [{\"metadata\": {\"name\": 1}}]}"));
  const auto plan = check::read_pip_report(
      "WARNING: x\n{\"install\": [{\"metadata\": {\"name\": \"a\", \"version\": \"1\"}, "
      "\"download_info\": {\"url\": \"https://h/a.whl\"}, \"requested\": true}]}");
  REQUIRE(plan);
  CHECK(plan->arrivals[0].address == "https://h/a.whl");
  CHECK(plan->arrivals[0].is_requested);
}

TEST_CASE("addresses: credentials are found for their server, and hidden") {
  wheels::WebSettings settings;
  wheels::collect_credentials("global.index-url='https://u:p%40x@host:8080/simple' http://free/",
                              settings);
  REQUIRE(settings.credentials.size() == 1);
  CHECK(settings.credentials["https://host:8080"] == "u:p%40x");
  CHECK(without_credentials("at https://u:p@host/x, http://h/@y") ==
        "at https://***@host/x, http://h/@y");
  CHECK(path_of_address("file:///tmp/a%2Bb.whl#sha256=1") == "/tmp/a+b.whl");
  CHECK(path_of_address("file://localhost/tmp/x") == "/tmp/x");
  CHECK_FALSE(path_of_address("https://host/x"));
  CHECK(percent_decoded("%zz%2") == "%zz%2");
}
