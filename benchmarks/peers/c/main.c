/* A peer of the benchmarks over Aeron's C client.
 *
 * Modes, options and output are those of every peer: benchmarks/README.md, "Peer programs". */
#include <stdlib.h>
#include <string.h>

#include "fail.h"
#include "modes.h"
#include "pool.h"

int main(int argc, char **argv)
{
    options_t options = options_parse(argc, argv);
    if (strcmp(options.mode, "pool") == 0)
    {
        pool_print_digest(options.size);
    }
    else if (strcmp(options.mode, "latency") == 0)
    {
        run_round_trips(&options, &options.stream);
    }
    else if (strcmp(options.mode, "throughput") == 0)
    {
        run_throughput(&options);
    }
    else if (strcmp(options.mode, "rpc-server") == 0)
    {
        run_rpc_server(&options);
    }
    else if (strcmp(options.mode, "rpc-client") == 0)
    {
        run_round_trips(&options, &options.reply_stream);
    }
    else if (strcmp(options.mode, "market-publisher") == 0)
    {
        run_market_publisher(&options);
    }
    else if (strcmp(options.mode, "market-consumer") == 0)
    {
        run_market_consumer(&options);
    }
    else
    {
        fail("there is no mode '%s'", options.mode);
    }
    return EXIT_SUCCESS;
}
