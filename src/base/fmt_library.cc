// The compiled part of the fmt library. Debian ships it as a shared library only, and that one
// needs the libstdc++ of wherever the command runs; here it becomes part of the command.
#include <fmt/format-inl.h>

#ifndef FMT_HEADER_ONLY
// What the headers declare and expect to find compiled once.
template auto fmt::detail::thousands_sep_impl<char>(fmt::detail::locale_ref)
    -> fmt::detail::thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl<char>(fmt::detail::locale_ref) -> char;
template auto fmt::detail::dragonbox::to_decimal<float>(float) noexcept
    -> fmt::detail::dragonbox::decimal_fp<float>;
template auto fmt::detail::dragonbox::to_decimal<double>(double) noexcept
    -> fmt::detail::dragonbox::decimal_fp<double>;
#endif
