/* Standard input and output: the peer says that it is ready, hears that it may go, and ends when nobody listens. */
#ifndef CONTROL_H
#define CONTROL_H

#include <stdbool.h>
#include <stdint.h>

/* Says ready, and returns when go has come. */
void control_ready(void);

/* Whether standard input has been closed. */
bool control_is_closed(void);

/* Waits until standard input is closed, but no longer than this. */
void control_linger(int milliseconds);

#endif
