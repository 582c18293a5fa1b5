#include "options.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

#include "tick.hpp"

using namespace std::string_literals;

namespace
{
template <typename T> T toNumber(std::string_view text, T least)
{
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !(value >= least))
    {
        throw std::invalid_argument("'"s.append(text) + "' is not a number that is allowed here");
    }
    return value;
}

std::chrono::nanoseconds toTime(std::string_view text)
{
    return std::chrono::round<std::chrono::nanoseconds>(std::chrono::duration<double>(toNumber(text, 0.0)));
}

bool toTicks(std::string_view text)
{
    if (text != "full" && text != "none")
    {
        throw std::invalid_argument("ticks are 'full' or 'none'");
    }
    return text == "full";
}
} // namespace

Options Options::parse(int argc, char **argv)
{
    Options options;
    const std::map<std::string_view, std::function<void(std::string_view)>> setters = {
        {"--aeron-dir", [&](auto value) { options.aeronDir = value; }},
        {"--channel", [&](auto value) { options.stream.channel = value; }},
        {"--stream", [&](auto value) { options.stream.id = toNumber(value, INT32_MIN); }},
        {"--reply-channel", [&](auto value) { options.replyStream.channel = value; }},
        {"--reply-stream", [&](auto value) { options.replyStream.id = toNumber(value, INT32_MIN); }},
        {"--size", [&](auto value) { options.size = toNumber(value, tick::LENGTH); }},
        {"--seconds", [&](auto value) { options.extent.time = toTime(value); }},
        {"--messages", [&](auto value) { options.extent.messages = toNumber(value, UINT64_C(0)); }},
        {"--batch", [&](auto value) { options.batch = toNumber(value, 1); }},
        {"--tick", [&](auto value) { options.ticks = toTicks(value); }},
        {"--rate", [&](auto value) { options.rate = toNumber(value, UINT64_C(0)); }},
    };
    if (argc < 2)
    {
        throw std::invalid_argument("a mode is missing");
    }
    options.mode = argv[1];
    for (int i = 2; i < argc; i += 2)
    {
        const auto setter = setters.find(argv[i]);
        if (setter == setters.end())
        {
            throw std::invalid_argument("there is no option '"s + argv[i] + "'");
        }
        if (i + 1 == argc)
        {
            throw std::invalid_argument(argv[i] + " needs a value"s);
        }
        setter->second(argv[i + 1]);
    }
    return options;
}
