# The libraries we build on, all from the distribution (Debian's names in scripts/setup).
find_package(Threads REQUIRED)
foreach(pair fmt:libfmt-dev nlohmann_json:nlohmann-json3-dev CLI11:libcli11-dev
             tl-expected:libexpected-dev tomlplusplus:libtomlplusplus-dev)
  string(REPLACE ":" ";" pair ${pair})
  list(GET pair 0 library)
  list(GET pair 1 package)
  find_package(${library} QUIET)
  if(NOT ${library}_FOUND)
    message(FATAL_ERROR "${library} is missing: install it (Debian: apt-get install ${package}), "
                        "or let `scripts/setup build` install all that the build needs")
  endif()
endforeach()

# fmt without libfmt.so, which would bring the libstdc++ of wherever the command runs: its compiled
# part is src/base/fmt_library.cc, written for versions 9; of others every file compiles its own.
add_library(cohabit_fmt INTERFACE)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  # FMT_SHARED as for the distribution's library: the same declarations.
  target_compile_definitions(cohabit_fmt INTERFACE FMT_SHARED)
  get_target_property(fmt_headers fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(cohabit_fmt SYSTEM INTERFACE ${fmt_headers})
else()
  target_link_libraries(cohabit_fmt INTERFACE fmt::fmt-header-only)
endif()

# cohabit_NAME with the headers of a library of which the archive is taken. Static, since the command
# runs inside broken environments and needs the C library alone. Sets COHABIT_<NAME> to the archive.
function(cohabit_static_library name header archive package)
  string(TOUPPER ${name} upper)
  find_path(COHABIT_${upper}_INCLUDE ${header})
  find_library(COHABIT_${upper} NAMES ${archive})
  if(NOT COHABIT_${upper} OR NOT COHABIT_${upper}_INCLUDE)
    message(FATAL_ERROR "The static library ${archive} is missing: install it (Debian: apt-get install ${package}), "
                        "or let `scripts/setup build` install all that the build needs")
  endif()
  add_library(cohabit_${name} INTERFACE)
  target_include_directories(cohabit_${name} SYSTEM INTERFACE ${COHABIT_${upper}_INCLUDE})
endfunction()

cohabit_static_library(re2 re2/filtered_re2.h libre2.a libre2-dev)
# Debian's archive cannot go into a shared library (local TLS): libcohabit.so takes libre2.so.
find_library(COHABIT_RE2_SHARED NAMES re2)
target_link_libraries(cohabit_re2 INTERFACE
  $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,${COHABIT_RE2_SHARED},${COHABIT_RE2}> Threads::Threads)

# SHA-256: only the hash's own object files are taken from the archive.
cohabit_static_library(crypto openssl/sha.h libcrypto.a libssl-dev)
target_link_libraries(cohabit_crypto INTERFACE ${COHABIT_CRYPTO})

# libarchive for reading tar alone, which needs none of the libraries that it can use. Both are static in
# the command; libcohabit.so takes the shared ones, as Debian's archives are not made for it.
cohabit_static_library(archive archive.h libarchive.a libarchive-dev)
cohabit_static_library(zstd zstd.h libzstd.a libzstd-dev)
find_library(COHABIT_ARCHIVE_SHARED NAMES archive)
find_library(COHABIT_ZSTD_SHARED NAMES zstd)
target_link_libraries(cohabit_archive INTERFACE cohabit_zstd
  $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,${COHABIT_ARCHIVE_SHARED},${COHABIT_ARCHIVE}>
  $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,SHARED_LIBRARY>,${COHABIT_ZSTD_SHARED},${COHABIT_ZSTD}>)

# XXH3, compiled into the file that uses it.
find_path(COHABIT_XXHASH_INCLUDE xxhash.h)
if(NOT COHABIT_XXHASH_INCLUDE)
  message(FATAL_ERROR "xxhash.h is missing: install it (Debian: apt-get install libxxhash-dev), "
                      "or let `scripts/setup build` install all that the build needs")
endif()
add_library(cohabit_xxhash INTERFACE)
target_include_directories(cohabit_xxhash SYSTEM INTERFACE ${COHABIT_XXHASH_INCLUDE})

# Deflated members of wheels.
cohabit_static_library(zlib zlib.h libz.a zlib1g-dev)
target_link_libraries(cohabit_zlib INTERFACE ${COHABIT_ZLIB})

# Environments of conda are YAML.
cohabit_static_library(yaml yaml.h libyaml.a libyaml-dev)
target_link_libraries(cohabit_yaml INTERFACE ${COHABIT_YAML})

# libcurl is opened where it is needed (src/facts/wheels/web_library.cc): its declarations are enough.
find_path(COHABIT_CURL_INCLUDE curl/curl.h)
if(NOT COHABIT_CURL_INCLUDE)
  message(FATAL_ERROR "curl/curl.h is missing: install it (Debian: apt-get install libcurl4-openssl-dev), "
                      "or let `scripts/setup build` install all that the build needs")
endif()
add_library(cohabit_curl_headers INTERFACE)
target_include_directories(cohabit_curl_headers SYSTEM INTERFACE ${COHABIT_CURL_INCLUDE})
