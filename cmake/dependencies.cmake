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
