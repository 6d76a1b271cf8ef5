// The structure of an Itanium C++ name: in which scopes it lies, and what kind of thing it is.
//
// No demangling: only the outline is read (C++ ABI, section 5.1). Two symbols are members of one
// class when the text of their scopes is equal, whatever the words in it are, so nothing here
// depends on which library the name is from. The one scope known by name is `std`, because the
// grammar itself abbreviates it (St, Ss, Sa, ...).
#pragma once

#include <string>
#include <string_view>

namespace cohabit {

enum class NameKind {
  kC,         // not a C++ name, or one whose outline cannot be read
  kEntity,    // a function or an object
  kVtable,    // _ZTV, _ZTT, _ZTC
  kTypeInfo,  // _ZTI, _ZTS: compared by name, harmless to share
  kThunk,     // _ZTh, _ZTv, _ZTc: enters a virtual function
  kOther,     // guards, transaction clones, references to temporaries
};

struct MangledName {
  NameKind kind = NameKind::kC;
  // The outermost scopes, each as written, with its template arguments; empty: there is none.
  std::string_view first, second;
  std::string_view scope;  // all scopes as one text; equal <=> same scope
  std::string_view last;   // the entity's own name as written
  bool standard = false;   // lies in std by the grammar's abbreviation
  bool constructor = false;
  bool destructor = false;
  bool const_member = false;

  bool is_cpp() const { return kind != NameKind::kC; }
  // Something that says that `scope` is a class, not a namespace.
  bool shows_class() const {
    return constructor || destructor || const_member || kind == NameKind::kVtable ||
           kind == NameKind::kThunk;
  }
};

MangledName parse_mangled(std::string_view symbol);

// The family of a C++ name: its first two scopes, enough to tell google::protobuf from google::x
// and one class of std from another; a function directly in std is a family by itself. Empty for
// names without a scope. As written, e.g. "6google8protobuf".
std::string_view family_text(const MangledName& name);

// For people: demangled, or the symbol itself.
std::string demangle(std::string_view symbol);
// "6google8protobuf" -> "google::protobuf".
std::string readable_scope(std::string_view family);

}  // namespace cohabit
