// What FlashInfer's logging.h uses of spdlog: nothing is said.
#pragma once
#include <memory>
#include <string>

namespace spdlog {
namespace level {
enum level_enum { off };
}
struct sink {
	void set_pattern(const std::string &) {}
	void set_level(level::level_enum) {}
};
namespace sinks {
using stdout_color_sink_mt = sink;
}
struct logger {
	logger(const char *, std::shared_ptr<sink>) {}
};
inline void set_default_logger(std::shared_ptr<logger>) {}
inline void set_level(level::level_enum) {}
template <typename... T> void trace(T &&...) {}
template <typename... T> void debug(T &&...) {}
template <typename... T> void info(T &&...) {}
template <typename... T> void warn(T &&...) {}
template <typename... T> void error(T &&...) {}
template <typename... T> void critical(T &&...) {}
} // namespace spdlog
