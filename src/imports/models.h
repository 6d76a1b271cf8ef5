// Models: functions of Python and its standard library that the interpreter computes itself,
// because their source is native, or long, or reads files.
//
// A model goes by its full name: "builtins.len", "posixpath.exists", "str.startswith". It also
// replaces the function of that name when a module's source defines one. A name that ends in "()"
// is a property of a value ("Path.parent()"). A model returns null when it raised.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "imports/interpreter.h"

namespace cohabit::python {

std::span<const ModelRow> builtin_models();      // models_builtins.cc
std::span<const ModelRow> value_models();        // models_values.cc: str, list, dict, ...
std::span<const ModelRow> system_models();       // models_system.cc: sys, os, glob, pathlib
std::span<const ModelRow> data_models();         // models_data.cc: text, JSON, metadata
std::span<const ModelRow> pattern_models();      // models_patterns.cc: re
std::span<const ModelRow> task_models();         // models_tasks.cc: threads, executors, asyncio
std::span<const ModelRow> import_models();       // models_imports.cc: importlib, ctypes, pkgutil
std::span<const ModelRow> entry_point_models();  // models_entry_points.cc: importlib.metadata

// What a program reads from this file, absolute. Nothing if it cannot be known: what stands in
// /proc about a process is of the one that reads it, which never runs here.
std::optional<std::string> text_for_program(Interpreter& in, std::string_view path, uint64_t most);

// The file of a ModuleSpec ("origin") or a loader ("path"); nothing: it names none.
std::optional<ModuleSpec> file_spec(Interpreter& in, Ref spec,
                                    std::string_view where = "origin");  // models_imports.cc

// A namespace package of its search locations; nothing: the spec is of something else.
std::optional<ModuleSpec> namespace_spec(Ref spec);  // models_imports.cc

// Whether everything in `set` is in `whole`, another container.
std::optional<bool> is_subset(Interpreter& in, const Sequence& set, Ref whole);  // models_values.cc

}  // namespace cohabit::python
