// Addresses as pip, conda and their like take them; the parts that must not be shown.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/secrets.h"

using namespace cohabit;

namespace {

std::string hidden(std::string text) {
  for (const auto& [begin, end] : find_credentials(text))
    text.replace(begin, end - begin, end - begin, 'x');
  return text;
}

}  // namespace

TEST_CASE("secrets: users, tokens of channels and parameters in addresses") {
  CHECK(hidden("https://u:pw@host/simple") == "https://xxxx@host/simple");
  CHECK(hidden("see https://tok@host, https://a@b@host/") ==
        "see https://xxx@host, https://xxx@host/");
  CHECK(hidden("https://host/t/abc-1/main") == "https://host/t/xxxxx/main");
  CHECK(hidden("https://host/t/abc") == "https://host/t/xxx");
  CHECK(hidden("https://host/a?x=1&token=abc&y=2#k=v") == "https://host/a?x=1&token=xxx&y=2#k=v");
  CHECK(hidden("https://host/?api_key=abc") == "https://host/?api_key=xxx");
  CHECK(hidden("https://h/?u=https://a:b@c/") == "https://h/?u=https://xxx@c/");
}

TEST_CASE("secrets: tokens of known shape") {
  const std::string run = "abcdefghijklmnopqrstuvwxyz012345", gone(run.size(), 'x');
  for (const char* prefix :
       {"ghp_", "gho_", "github_pat_", "hf_", "sk-", "sk-proj-", "xoxb-", "glpat-"}) {
    const std::string text = hidden("of " + (prefix + run) + ", done");
    CHECK(text.starts_with(std::string("of ") + std::string(prefix).substr(0, 3)));
    CHECK(text.ends_with(gone + ", done"));
    CHECK(hidden(text) == text);
    CHECK(find_credentials(text).size() == 1);  // what stands for one is one
  }
  CHECK(hidden("AKIAIOSFODNN7EXAMPLE") == "AKIAxxxxxxxxxxxxxxxx");
  CHECK(hidden("https://hf_" + run + "@host") == "https://" + std::string(35, 'x') + "@host");
  for (const char* text :
       {"hf_model", "hf_hub_download_of_many_files_0123456789", "xsk-0123456789012345678901",
        "sk-learn-contrib-extensions", "AKIA0123", "hf_abcdefghijklmnopqrstuvwxyz"})
    CHECK(hidden(text) == text);
}

TEST_CASE("secrets: what is none stays") {
  for (const char* text :
       {"https://host/a@b", "https://host/?x=a@b", "a@b", "://", "https://", "https://@host",
        "f\"http://{user}:{pw}@host\"", "http://%s:%s@host", "\"https://\" + name + \"@host\"",
        "https://host/tt/abc/", "https://host?a"})
    CHECK(hidden(text) == text);
}

TEST_CASE("secrets: many marks in one line take linear time") {
  std::string text;
  for (int i = 0; i < 1 << 20; i++) text += "://";
  CHECK(find_credentials(text).empty());
}

TEST_CASE("secrets: names of variables") {
  for (const char* name :
       {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "token", "X_AUTH", "DB_PASS",
        "MYSQL_PWD", "GPG_PASSPHRASE", "GITHUB_PAT", "sig", "SENTRY_DSN"})
    CHECK(names_secret(name));
  for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH", "PWD", "OLDPWD", "SIGNAL",
                           "PATCH_LEVEL", "TOKENIZERS_PARALLELISM", "tokenizer"})
    CHECK_FALSE(names_secret(name));
  CHECK(secret_values({{"A_TOKEN", "123456"}, {"B_TOKEN", "12345"}, {"C", "abcdefgh"}}) ==
        std::vector<std::string>{"123456"});
}

TEST_CASE("secrets: values of options") {
  using Words = std::vector<std::string>;
  CHECK(without_secret_arguments({"a.py", "--api-key", "K", "--token=T=1", "-password", "P", "--n",
                                  "5", "wandb.api_key=W", "HF_TOKEN=H"}) ==
        Words{"a.py", "--api-key", "***", "--token=***", "-password", "***", "--n", "5",
              "wandb.api_key=***", "HF_TOKEN=***"});
  CHECK(without_secret_arguments({"--no-auth", "--port", "80", "--token", "-x", "--secret"}) ==
        Words{"--no-auth", "--port", "80", "--token", "-x", "--secret"});
  CHECK(without_secret_arguments({"--token", "-Ab3_", "token", "next", "x key=5", "--"}) ==
        Words{"--token", "***", "token", "next", "x key=5", "--"});
  const Words values = secret_values(with_secret_arguments(
      {{"A_TOKEN", "123456"}}, {"--token", "sk-XYZ1", "--tokenizer", "transformers", "--key=5"}));
  CHECK(values == Words{"sk-XYZ1", "123456"});
}

TEST_CASE("secrets: which variables hold one") {
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
           {"DB_PASSWORD", "hunter2"},
           {"DB_PASSWORD", "python"},
           {"OPENAI_KEY", "letters"},
           {"X_AUTH", "amanda:pw"},
           {"AWS_ACCESS_KEY_ID", "AKIAIOSFODNNEXAMPLE"},
           {"SSH_KEY_DATA", "MIIEpAIBAAKCAQEA7bq"},
           {"AWS_SECRET_ACCESS_KEY", "/bPxRfi/CYEXAMPLEKEYwJalrXUtnFEMIK7MDENG"},
           {"SECRETS_DIR", "relative/dir7"},
           {"KEY_TYPE", "xxxxxx"},
           {"HOOK_WEBHOOK", "https://host/services/T000/B000/abc"}})
    CHECK_MESSAGE(holds_secret(name, value), name);
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"KEY_TYPE", "string"},
                                                        {"MONKEY", "version"},
                                                        {"AUTH_BACKEND", "ldap3.core"},
                                                        {"KEY_ALGORITHM", "sha256"},
                                                        {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"},
                                                        {"USE_AUTH", "False"},
                                                        {"SECRETS_DIR", "/data/e3.8.18"},
                                                        {"SSH_KEYS_PATH", "/home/u:/opt/keys"},
                                                        {"GIT_AUTHOR_NAME", "J. Doe!"},
                                                        {"PATH", "/usr/bin"}})
    CHECK_MESSAGE(!holds_secret(name, value), name);
}

TEST_CASE("secrets: values that other text is full of are not looked for") {
  using Words = std::vector<std::string>;
  const std::map<std::string, std::string> variables = {{"A_TOKEN", "correct-horse"},
                                                        {"B_TOKEN", "python3.8"},
                                                        {"C_TOKEN", "3.8.18"},
                                                        {"D_TOKEN", "hunter2"},
                                                        {"E_TOKEN", "ab7/secret7/Other"}};
  CHECK(secret_values(variables) == Words{"ab7/secret7/Other", "hunter2", "secret7"});
  CHECK(all_secret_values(variables).size() == 6);
  CHECK(stand_in_of("ab7/secret7") == "xxx/xxxxxxx");
  CHECK(with_stand_ins({"--token", "abc", "--key", "torch", "--api-key=K7", "n"}) ==
        Words{"--token", "xxx", "--key", "torch", "--api-key=xx", "n"});
}
