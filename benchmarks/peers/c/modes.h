/* What this program can do: each connects, says ready, runs when it is told to, and prints what came of it. */
#ifndef MODES_H
#define MODES_H

#include "options.h"

/* One message at a time, there and back on the stream returning. */
void run_round_trips(const options_t *options, const stream_t *returning);

/* A batch is sent, then received, on one thread. */
void run_throughput(const options_t *options);

/* Every request goes back as it is. */
void run_rpc_server(const options_t *options);

/* A feed of ticks that say when they were sent, and who receives it. */
void run_market_publisher(const options_t *options);
void run_market_consumer(const options_t *options);

#endif
