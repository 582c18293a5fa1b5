// Standard input and output: the peer says that it is ready, hears that it may go, and ends when nobody listens.
#pragma once

#include <chrono>

namespace control
{
// Says ready, and returns when go has come.
void ready();

// Whether standard input has been closed.
bool isClosed();

// Waits until standard input is closed, but no longer than this.
void linger(std::chrono::milliseconds limit);
} // namespace control
