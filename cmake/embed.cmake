# The command is one file: the tables of data/ are compiled into it. Each data/NAME.tsv becomes
# generated/data/NAME.inc, a string literal to be included where it is used.
file(GLOB tables CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/data/*.tsv)
foreach(table ${tables})
  get_filename_component(name ${table} NAME_WE)
  file(READ ${table} text)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/data/${name}.inc
       CONTENT "R\"table(@text@)table\"\n" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${table})
endforeach()

# And what `cohabit verify` runs in its children: the command starts it from memory.
set(program ${PROJECT_SOURCE_DIR}/runtime/verify/verified_run.py)
file(READ ${program} text)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/verified_run.inc
     CONTENT "R\"program(@text@)program\"\n" @ONLY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${program})
