// The words that the capture rules share: groups of one provider, one own library and one family are
// one finding, with a line of evidence for each consumer.
#pragma once

#include <vector>

#include "findings/rule.h"

namespace cohabit {

// The groups of these verdicts, merged; each inner list is one finding.
std::vector<std::vector<const CaptureGroup*>> merge_groups(const Captures& captures,
                                                           const std::vector<Verdict>& verdicts);
// Libraries, counts, evidence and help of one merged finding; the headline is the rule's.
Finding describe_groups(const Evidence& evidence, const RuleInfo& info,
                        const std::vector<const CaptureGroup*>& groups);
// "protobuf" for 6google8protobuf, "libz.so.1" for C names.
std::string family_words(const Evidence& evidence, const CaptureGroup& group);

}  // namespace cohabit
