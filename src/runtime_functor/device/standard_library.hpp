// What kernel sources and functors use of the C++ standard library, for NVRTC, which has none. It
// stands for each of the headers that headers.cpp lists. Declared and not defined, or defined
// empty: what host code alone calls.
#pragma once

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long;
using uint64_t = unsigned long;
using intptr_t = long;
using uintptr_t = unsigned long;
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define UINT32_MAX 4294967295U
#define INT64_MAX 9223372036854775807L
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX 18446744073709551615UL
#define INFINITY __builtin_bit_cast(float, 0x7F800000)

namespace std {

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::intptr_t;
using ::size_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::uintptr_t;
using ptrdiff_t = long;
using nullptr_t = decltype(nullptr);
enum class byte : unsigned char {};

using ::memcpy;
using ::memset;

// --- type_traits
template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  using value_type = T;
  using type = integral_constant;
  constexpr operator T() const noexcept { return v; }
  constexpr T operator()() const noexcept { return v; }
};
template <bool b>
using bool_constant = integral_constant<bool, b>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <class, class>
inline constexpr bool is_same_v = false;
template <class T>
inline constexpr bool is_same_v<T, T> = true;
template <class T, class U>
struct is_same : bool_constant<is_same_v<T, U>> {};

template <bool, class A, class>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool b, class A, class B>
using conditional_t = typename conditional<b, A, B>::type;
template <bool, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> {
  using type = T;
};
template <bool b, class T = void>
using enable_if_t = typename enable_if<b, T>::type;

template <class T>
struct type_identity {
  using type = T;
};
template <class T>
using type_identity_t = typename type_identity<T>::type;
template <class T>
struct remove_const : type_identity<T> {};
template <class T>
struct remove_const<const T> : type_identity<T> {};
template <class T>
using remove_const_t = typename remove_const<T>::type;
template <class T>
struct remove_cv : type_identity<T> {};
template <class T>
struct remove_cv<const T> : type_identity<T> {};
template <class T>
struct remove_cv<volatile T> : type_identity<T> {};
template <class T>
struct remove_cv<const volatile T> : type_identity<T> {};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;
template <class T>
struct remove_reference : type_identity<T> {};
template <class T>
struct remove_reference<T&> : type_identity<T> {};
template <class T>
struct remove_reference<T&&> : type_identity<T> {};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
using remove_cvref_t = remove_cv_t<remove_reference_t<T>>;
template <class T>
struct remove_pointer : type_identity<T> {};
template <class T>
struct remove_pointer<T*> : type_identity<T> {};
template <class T>
struct remove_pointer<T* const> : type_identity<T> {};
template <class T>
using remove_pointer_t = typename remove_pointer<T>::type;

template <class T>
inline constexpr bool is_void_v = is_same_v<remove_cv_t<T>, void>;
template <class T>
inline constexpr bool is_const_v = false;
template <class T>
inline constexpr bool is_const_v<const T> = true;
template <class T, class... Of>
inline constexpr bool is_one_of_v = (is_same_v<remove_cv_t<T>, Of> || ...);
template <class T>
inline constexpr bool is_integral_v =
    is_one_of_v<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned,
                long, unsigned long, long long, unsigned long long, wchar_t, char16_t, char32_t>;
template <class T>
inline constexpr bool is_floating_point_v = is_one_of_v<T, float, double>;
template <class T>
inline constexpr bool is_arithmetic_v = is_integral_v<T> || is_floating_point_v<T>;
template <class T>
inline constexpr bool is_trivial_v = __is_trivial(T);
template <class T>
inline constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
template <class T>
T&& declval() noexcept;
template <class From, class To>
inline constexpr bool is_convertible_v = __is_convertible_to(From, To);

// --- concepts
template <class T, class U>
concept same_as = is_same_v<T, U> && is_same_v<U, T>;
template <class From, class To>
concept convertible_to = is_convertible_v<From, To>;
template <class T>
concept integral = is_integral_v<T>;
template <class T>
concept floating_point = is_floating_point_v<T>;

// --- utility, algorithm, iterator, bit
template <class T>
constexpr remove_reference_t<T>&& move(T&& value) noexcept {
  return static_cast<remove_reference_t<T>&&>(value);
}
template <class T>
constexpr T&& forward(remove_reference_t<T>& value) noexcept {
  return static_cast<T&&>(value);
}
template <class T>
constexpr const T& as_const(T& value) noexcept {
  return value;
}
template <class T>
constexpr void swap(T& a, T& b) {
  T old = static_cast<T&&>(a);
  a = static_cast<T&&>(b);
  b = static_cast<T&&>(old);
}
template <class T>
constexpr const T& min(const T& a, const T& b) {
  return b < a ? b : a;
}
template <class T>
constexpr const T& max(const T& a, const T& b) {
  return a < b ? b : a;
}
template <class T, size_t n>
constexpr size_t size(const T (&)[n]) noexcept {
  return n;
}
template <class To, class From>
constexpr To bit_cast(const From& value) noexcept {
  return __builtin_bit_cast(To, value);
}

constexpr int countr_zero(unsigned value) noexcept {
  int zeros = 0;
  while (zeros < 32 && ((value >> zeros) & 1U) == 0) ++zeros;
  return zeros;
}

template <class T, T... values>
struct integer_sequence {
  static constexpr size_t size() { return sizeof...(values); }
};
template <class, class>
struct joined;
template <class T, T... a, T... b>
struct joined<integer_sequence<T, a...>, integer_sequence<T, b...>> {
  using type = integer_sequence<T, a..., (static_cast<T>(sizeof...(a)) + b)...>;
};
template <class T, size_t n>
struct counted : joined<typename counted<T, n / 2>::type, typename counted<T, n - n / 2>::type> {};
template <class T>
struct counted<T, 0> {
  using type = integer_sequence<T>;
};
template <class T>
struct counted<T, 1> {
  using type = integer_sequence<T, 0>;
};
template <class T, T n>
using make_integer_sequence = typename counted<T, static_cast<size_t>(n)>::type;
template <size_t... values>
using index_sequence = integer_sequence<size_t, values...>;
template <size_t n>
using make_index_sequence = make_integer_sequence<size_t, n>;

// --- limits
template <class T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  static constexpr float infinity() { return __builtin_bit_cast(float, 0x7F800000); }
  static constexpr float quiet_NaN() { return __builtin_bit_cast(float, 0x7FC00000); }
  static constexpr float max() { return 3.402823466e+38F; }
  static constexpr float lowest() { return -3.402823466e+38F; }
  static constexpr float min() { return 1.175494351e-38F; }
};
template <>
struct numeric_limits<int32_t> {
  static constexpr int32_t max() { return INT32_MAX; }
  static constexpr int32_t min() { return INT32_MIN; }
  static constexpr int32_t lowest() { return INT32_MIN; }
};

// --- array
template <class T, size_t n>
struct array {
  T elements[n];
  constexpr T& operator[](size_t i) { return elements[i]; }
  constexpr const T& operator[](size_t i) const { return elements[i]; }
  constexpr size_t size() const { return n; }
  constexpr T* data() { return elements; }
  constexpr const T* data() const { return elements; }
  constexpr const T* begin() const { return elements; }
  constexpr const T* end() const { return elements + n; }
};
template <class T, class... Rest>
array(T, Rest...) -> array<T, 1 + sizeof...(Rest)>;

// --- of host code
class string_view {
  const char* text_ = nullptr;
  size_t size_ = 0;
};
namespace ranges {
template <class>
concept contiguous_range = false;
template <class>
concept sized_range = false;
template <class>
concept borrowed_range = false;
template <class>
using range_value_t = void;
template <class Range>
auto data(Range& range);
template <class Range>
auto ssize(Range& range);
}  // namespace ranges

}  // namespace std
