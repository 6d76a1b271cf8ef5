// Versions and requirements are held against `packaging` in tests/metadata; here are the readers.
#include <doctest/doctest.h>

#include "base/sha256.h"
#include "facts/python/distributions.h"
#include "facts/python/installed_files.h"
#include "facts/python/requirement.h"
#include "facts/python/wheel_metadata.h"
#include "temp_tree.h"

using namespace cohabit;

TEST_CASE("sha256: the examples of FIPS 180-4, and lengths around a block, by sha256sum") {
  const auto hex = [](const std::string& text) {
    std::string result;
    for (const uint8_t byte : sha256(Bytes(text))) {
      result += "0123456789abcdef"[byte >> 4];
      result += "0123456789abcdef"[byte & 15];
    }
    return result;
  };
  CHECK(hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  for (const int size : {55, 56, 63, 64, 65, 119, 120, 1000}) {
    const std::string size_text = std::to_string(size);
    const std::string real =
        output_of("head -c " + size_text + " /dev/zero | tr '\\0' x | sha256sum | cut -d' ' -f1");
    CAPTURE(size);
    CHECK(hex(std::string(static_cast<size_t>(size), 'x')) + "\n" == real);
  }
}

TEST_CASE("METADATA: headers end at a blank line, not inside a folded licence") {
  const MetadataHeaders headers = parse_metadata_headers(
      "Metadata-Version: 2.1\r\nName: a.B\nLicense: some\n        \n        Name: not this\n"
      "Version: 1.0\nRequires-Dist: x>=1 ; extra == 'y'\nprovides-extra: y\n"
      "Requires-Python: >=3.9\n\nRequires-Dist: not this\n");
  CHECK(headers.name == "a.B");
  CHECK(headers.version == "1.0");
  CHECK(headers.requires_python == ">=3.9");
  REQUIRE(headers.requires_dist.size() == 1);
  CHECK(headers.requires_dist[0] == "x>=1 ; extra == 'y'");
  CHECK(headers.provides_extra == std::vector<std::string>{"y"});
}

TEST_CASE("RECORD: quoted names stay where they are when the rows move") {
  std::vector<RecordRows> records;
  for (int i = 0; i < 9; i++) records.push_back(parse_record("\"a, comma\",,\nb,,\n"));
  for (const RecordRows& record : records) CHECK(record.rows[0].path == "a, comma");
}

TEST_CASE("RECORD: plain, quoted, incomplete and absent fields") {
  const RecordRows record =
      parse_record("a.py,sha256=x,12\r\n\"b,\"\"c\"\".so\",sha256=y,3\nd,,\ne\n\nf,h,-4\n\"open");
  REQUIRE(record.rows.size() == 6);
  CHECK(record.rows[0].path == "a.py");
  CHECK(record.rows[0].size == 12);
  CHECK(record.rows[1].path == "b,\"c\".so");
  CHECK(record.rows[1].size == 3);
  CHECK(record.rows[2].hash.empty());
  CHECK(record.rows[2].size == -1);
  CHECK(record.rows[3].path == "e");
  CHECK(record.rows[4].size == -1);
  CHECK(record.rows[5].path == "open");
}

TEST_CASE("requires.txt and direct_url.json") {
  CHECK(parse_egg_requirements("a>=1\n[x]\nb\n[y:os_name == \"nt\"]\nc\n[:os_name]\nd") ==
        std::vector<std::string>{"a>=1", "b ; extra == 'x'",
                                 "c ; extra == 'y' and (os_name == \"nt\")", "d ; (os_name)"});
  CHECK(editable_location(R"({"url": "file:///p", "dir_info": {"editable": true}})") ==
        "file:///p");
  for (const char* other : {"", "[", "{}", R"({"url": 3, "dir_info": {"editable": true}})",
                            R"({"url": "x", "dir_info": {}})", R"({"url": "x", "dir_info": []})"})
    CHECK(editable_location(other).empty());
}

TEST_CASE("installed files: who claims a path twice, and where it is") {
  const TempTree temp;
  temp.file("site/a-1.dist-info/METADATA", "Name: a\nVersion: 1\n");
  temp.file("site/a-1.dist-info/RECORD", "common/x.so,sha256=1,1\nown/../a.py,,\n../bin/a,,\n");
  temp.file("site/b-1.dist-info/METADATA", "Name: b\nVersion: 1\n");
  temp.file("site/b-1.dist-info/RECORD", "b.py,,\ncommon/x.so,sha256=2,1\n");
  temp.file("other/c-1.dist-info/METADATA", "Name: c\nVersion: 1\n");
  temp.file("other/c-1.dist-info/RECORD", "common/x.so,sha256=1,1\n");
  const Tree tree;
  const Distributions all = Distributions::read(tree, {temp / "site", temp / "other"}, {});
  const InstalledFiles files = InstalledFiles::read(tree, all);
  CHECK(files.rows().size() == 6);
  REQUIRE(files.claimed_twice().size() == 1);
  CHECK(files.claimed_twice()[0] == std::vector<uint32_t>{0, 4});
  CHECK(files.path_of(files.rows()[1]) == temp / "site/a.py");
  CHECK(files.path_of(files.rows()[2]) == temp / "bin/a");
  CHECK(record_hash(tree, temp / "site/a-1.dist-info/METADATA").has_value());
  CHECK(!record_hash(tree, temp / "site/none").has_value());
}
