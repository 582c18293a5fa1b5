// What this program can do: each connects, says ready, runs when it is told to, and prints what came of it.
#pragma once

#include "options.hpp"

// One message at a time, there and back on the stream returning.
void runRoundTrips(const Options &options, const Stream &returning);

// A batch is sent, then received, on one thread.
void runThroughput(const Options &options);

// Every request goes back as it is.
void runRpcServer(const Options &options);

// A feed of ticks that say when they were sent, and who receives it.
void runMarketPublisher(const Options &options);
void runMarketConsumer(const Options &options);
