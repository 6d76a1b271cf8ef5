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

# RE2, static: the command runs inside broken environments, and its package carries no more than fmt.
find_path(COHABIT_RE2_INCLUDE re2/filtered_re2.h)
find_library(COHABIT_RE2 NAMES libre2.a re2)
if(NOT COHABIT_RE2 OR NOT COHABIT_RE2_INCLUDE)
  message(FATAL_ERROR "RE2 is missing: install it (Debian: apt-get install libre2-dev), or let "
                      "`scripts/setup build` install all that the build needs")
endif()
add_library(cohabit_re2 INTERFACE)
target_include_directories(cohabit_re2 SYSTEM INTERFACE ${COHABIT_RE2_INCLUDE})
target_link_libraries(cohabit_re2 INTERFACE ${COHABIT_RE2} Threads::Threads)
