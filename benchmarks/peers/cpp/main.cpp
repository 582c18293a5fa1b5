// A peer of the benchmarks over Aeron's C++ client.
//
// Modes, options and output are those of every peer: benchmarks/README.md, "Peer programs".
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>

#include "modes.hpp"
#include "pool.hpp"

static const std::map<std::string, std::function<void(const Options &)>> MODES = {
    {"pool", [](auto &o) { std::cout << R"({"sha256": ")" << Pool::digest(o.size) << R"("})" << std::endl; }},
    {"latency", [](auto &o) { runRoundTrips(o, o.stream); }},
    {"throughput", runThroughput},
    {"rpc-server", runRpcServer},
    {"rpc-client", [](auto &o) { runRoundTrips(o, o.replyStream); }},
    {"market-publisher", runMarketPublisher},
    {"market-consumer", runMarketConsumer},
};

int main(int argc, char **argv)
{
    try
    {
        const Options options = Options::parse(argc, argv);
        const auto mode = MODES.find(options.mode);
        if (mode == MODES.end())
        {
            throw std::invalid_argument("there is no mode '" + options.mode + "'");
        }
        mode->second(options);
        return EXIT_SUCCESS;
    }
    catch (const std::exception &error)
    {
        std::cerr << error.what() << std::endl;
        return EXIT_FAILURE;
    }
}
