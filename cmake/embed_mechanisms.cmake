# Makes a C++ file of text files: cmake -D OUTPUT=... -D DIRECTORY=... -P embed_mechanisms.cmake
# The command is one file: what it knows must be in it.
file(GLOB paths ${DIRECTORY}/*.toml)
list(SORT paths)
set(text "// Made by cmake/embed_mechanisms.cmake.\n#include \"explain/knowledge.h\"\n\n")
string(APPEND text "namespace cohabit::explain {\n\nconst std::vector<EmbeddedFile>& embedded_mechanisms() {\n")
string(APPEND text "  static const std::vector<EmbeddedFile> kFiles = {\n")
foreach(path ${paths})
  get_filename_component(name ${path} NAME)
  file(READ ${path} content)
  # A literal holds at most 65536 characters in some compilers; no file is near it.
  string(APPEND text "      {\"${name}\", R\"COHABIT(${content})COHABIT\"},\n")
endforeach()
string(APPEND text "  };\n  return kFiles;\n}\n\n}  // namespace cohabit::explain\n")
file(WRITE ${OUTPUT} "${text}")
