// The loader's rules by name. All are on; a fidelity test switches each off and must then find a
// generated world on which the simulation and the real ld.so differ.
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <string_view>

namespace cohabit::sim {

enum class Rule {
  kBreadthFirst,         // DT_NEEDED breadth-first, not depth-first
  kSonameMatch,          // a loaded object's soname satisfies a name
  kNameMatch,            // so does any name it was asked by before
  kFileIdMatch,          // one file by two paths is one object
  kRpath,                // DT_RPATH
  kRpathInherited,       // of the loaders too
  kRpathOfProgram,       // and of the program
  kRunpathVoidsRpath,    // an object with RUNPATH uses no RPATH
  kRunpath,              // DT_RUNPATH
  kRunpathNotInherited,  // never for dependencies of dependencies
  kLibraryPath,          // LD_LIBRARY_PATH
  kLibraryPathOrder,     // RPATH before LD_LIBRARY_PATH before RUNPATH
  kLdCache,              // /etc/ld.so.cache
  kDefaultDirectories,
  kNodeflib,               // DF_1_NODEFLIB
  kHwcaps,                 // glibc-hwcaps subdirectories
  kOrigin,                 // $ORIGIN, $LIB, $PLATFORM
  kCallerDropped,          // the caller of dlopen serves for the opened name only
  kSkipWrongClass,         // a file of another class or machine is passed over
  kPreload,                // LD_PRELOAD
  kGlobalPromotion,        // RTLD_GLOBAL
  kPromotionAfterInit,     // takes effect after the constructors
  kPromotionOfLoaded,      // an open of a loaded object can make it global
  kDeepbind,               // RTLD_DEEPBIND: local scope first
  kDeepbindNewOnly,        // acts on newly mapped objects only
  kSymbolic,               // DT_SYMBOLIC: itself first
  kScopeAppended,          // a loaded dependency gets the new scope appended
  kVersionMatch,           // a versioned reference takes that version
  kUnversionedSatisfies,   // a definition without version satisfies a versioned reference
  kHiddenVersion,          // a hidden version is no default
  kUnversionedReference,   // takes the base or default version; one single version will do
  kVersionCheck,           // a missing version is an error
  kVersionRecords,         // records of versions have the form 1
  kWeakIsStrong,           // weak definitions count as any other (no LD_DYNAMIC_WEAK)
  kUnique,                 // STB_GNU_UNIQUE
  kUniqueNodelete,         // its provider stays
  kProtected,              // STV_PROTECTED
  kHiddenVisibility,       // hidden definitions do not count
  kCopySkipsProgram,       // copy relocations look past the program
  kPltValueNotDefinition,  // an undefined symbol with a value is no definition for calls
  kRelocationOrder,        // dependencies are relocated first
  kFailureUnwinds,         // a failed dlopen unmaps what it mapped
  kCloseUnmaps,            // dlclose
  kRelocationDependency,   // a binding keeps its provider
  kNodelete,               // RTLD_NODELETE, DF_1_NODELETE
  kNoload,                 // RTLD_NOLOAD
  kLazy,                   // jump slots bind at the first call
  kNamespaces,             // dlmopen
  kLoaderRelocatedLast,    // ld.so relocates itself again, last
  kStaticTls,              // the surplus for static TLS can be used up
  kFilter,                 // DT_AUXILIARY, DT_FILTER
  kMappable,               // segments that no address space holds are refused
  kRelrVersion,            // DT_RELR needs the version GLIBC_ABI_DT_RELR
  kCpuLevel,               // a level of x86 that this CPU has not is refused
  kIndirectAccess,         // GNU_PROPERTY_1_NEEDED_INDIRECT_EXTERN_ACCESS
  kLoaderMalloc,           // ld.so asks for its own malloc on behalf of the program
  kCount
};

constexpr size_t kRuleCount = static_cast<size_t>(Rule::kCount);

// All rules on, unless switched off.
class RuleSet {
 public:
  bool operator[](Rule rule) const { return !off_[static_cast<size_t>(rule)]; }
  void switch_off(Rule rule) { off_.set(static_cast<size_t>(rule)); }

 private:
  std::bitset<kRuleCount> off_;
};

// "breadth-first", "soname-match", ...
std::string_view rule_name(Rule rule);
std::optional<Rule> find_rule(std::string_view name);

}  // namespace cohabit::sim
