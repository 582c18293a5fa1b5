/* The driver's side of the shared memory, as small as the tests need it. */
#ifndef AA_TESTS_DRIVER_H
#define AA_TESTS_DRIVER_H

#include "cnc.h"
#include "log_buffer.h"

typedef void (*command_handler_t)(void *context, int32_t type_id, const uint8_t *command, size_t length);

/* Reads commands up to the end of the buffer at most, like the driver's reader; how many. */
int driver_read_commands(aa_ring_buffer_t *ring_buffer, command_handler_t handler, void *context);
/* Passes over a record whose writer died, by Aeron's rule; whether there was one. */
bool driver_unblock_commands(aa_ring_buffer_t *ring_buffer);

void driver_broadcast(aa_cnc_t *cnc, int32_t type_id, const void *record, size_t length);

/* Zeroes what lies between the positions, as the driver does behind the last subscriber. */
void driver_clean(aa_log_t *log, int64_t from, int64_t to);
/* Turns what a dead writer has left at a position into padding, by Aeron's rule: a frame with a claim marker, or a gap
 * that something comes behind; whether there was one. */
bool driver_unblock_log(aa_log_t *log, int64_t position);
/* Writes a frame as a receiver would (padding over a gap, fragments after a loss). */
void driver_write_frame(
    aa_log_t *log, int64_t position, int16_t type, uint8_t flags, const void *payload, int32_t payload_length);

#endif
