#define _GNU_SOURCE
#include "check.h"
#include "driver.h"
#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAPACITY 4096
#define PRODUCERS 4
#define COMMANDS_EACH 20000

typedef struct
{
    int32_t producer;
    int32_t sequence;
    uint8_t filler[64];
} command_t;

typedef struct
{
    int32_t next[PRODUCERS];
    int total;
} received_t;

static size_t command_length(int32_t sequence)
{
    return 8 + (size_t)sequence % 64;
}

static void check_command(void *context, int32_t type_id, const uint8_t *bytes, size_t length)
{
    received_t *received = context;
    command_t command;
    CHECK(length <= sizeof(command));
    memcpy(&command, bytes, length);
    CHECK(command.producer >= 0 && command.producer < PRODUCERS);
    CHECK_EQUAL(type_id, command.producer + 1);
    CHECK_EQUAL(command.sequence, received->next[command.producer]++);
    CHECK_EQUAL(length, command_length(command.sequence));
    for (size_t i = 8; i < length; i++)
    {
        CHECK_EQUAL(bytes[i], (uint8_t)command.sequence);
    }
    received->total++;
}

static void send_commands(aa_ring_buffer_t *ring_buffer, int32_t producer)
{
    for (int32_t sequence = 0; sequence < COMMANDS_EACH; sequence++)
    {
        command_t command = {.producer = producer, .sequence = sequence};
        memset(command.filler, (uint8_t)sequence, sizeof(command.filler));
        int result;
        while ((result = aa_ring_buffer_write(
                    ring_buffer, producer + 1, (const uint8_t *)&command, command_length(sequence))) == AA_FULL)
        {
            sched_yield();
        }
        CHECK_EQUAL(result, AA_OK);
    }
}

static void receive_all(aa_ring_buffer_t *ring_buffer)
{
    received_t received = {0};
    while (received.total < PRODUCERS * COMMANDS_EACH)
    {
        if (driver_read_commands(ring_buffer, check_command, &received) == 0)
        {
            sched_yield();
        }
    }
    CHECK_EQUAL(driver_read_commands(ring_buffer, check_command, &received), 0);
}

typedef struct
{
    aa_ring_buffer_t *ring_buffer;
    int32_t producer;
} producer_t;

static void *produce(void *argument)
{
    const producer_t *producer = argument;
    send_commands(producer->ring_buffer, producer->producer);
    return NULL;
}

TEST(ring_buffer_takes_commands_of_many_threads_whole_and_in_order)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    producer_t producers[PRODUCERS];
    pthread_t threads[PRODUCERS];
    for (int32_t i = 0; i < PRODUCERS; i++)
    {
        producers[i] = (producer_t){.ring_buffer = &cnc->to_driver, .producer = i};
        CHECK_EQUAL(pthread_create(&threads[i], NULL, produce, &producers[i]), 0);
    }
    receive_all(&cnc->to_driver);
    for (int32_t i = 0; i < PRODUCERS; i++)
    {
        pthread_join(threads[i], NULL);
    }
    aa_cnc_release(cnc);
}

TEST(ring_buffer_takes_commands_of_many_processes_whole_and_in_order)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    pid_t children[PRODUCERS];
    for (int32_t i = 0; i < PRODUCERS; i++)
    {
        children[i] = fork();
        if (children[i] == 0)
        {
            char path[FIXTURE_PATH_LENGTH];
            aa_cnc_t *own = NULL;
            CHECK_EQUAL(aa_cnc_open(in_directory(path, directory, "cnc.dat"), &own, NULL), AA_OK);
            send_commands(&own->to_driver, i);
            _exit(0);
        }
    }
    receive_all(&cnc->to_driver);
    for (int32_t i = 0; i < PRODUCERS; i++)
    {
        int status;
        CHECK_EQUAL(waitpid(children[i], &status, 0), children[i]);
        CHECK_EQUAL(status, 0);
    }
    aa_cnc_release(cnc);
}

static void count_bytes(void *context, int32_t type_id, const uint8_t *command, size_t length)
{
    (void)type_id, (void)command;
    *(size_t *)context += length;
}

TEST(ring_buffer_pads_to_its_end_where_a_record_does_not_fit)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_ring_buffer_t *ring_buffer = &cnc->to_driver;
    const uint8_t message[512] = {0};
    size_t bytes = 0;
    CHECK_EQUAL(aa_ring_buffer_write(ring_buffer, 1, message, 8), AA_OK);
    for (int i = 0; i < 7; i++)
    {
        CHECK_EQUAL(aa_ring_buffer_write(ring_buffer, 1, message, 512), AA_OK);
    }
    const int64_t before = ring_buffer->trailer->tail_position;
    CHECK_EQUAL(before, 16 + 7 * 520);
    CHECK_EQUAL(driver_read_commands(ring_buffer, count_bytes, &bytes), 8);

    CHECK_EQUAL(aa_ring_buffer_write(ring_buffer, 1, message, 512), AA_OK);
    CHECK_EQUAL(ring_buffer->trailer->tail_position, CAPACITY + 520);
    const aa_ring_buffer_record_t *padding = (const aa_ring_buffer_record_t *)(ring_buffer->records + before);
    CHECK_EQUAL(padding->type_id, AA_RING_BUFFER_PADDING_TYPE_ID);
    CHECK_EQUAL(padding->length, CAPACITY - before);
    bytes = 0;
    CHECK_EQUAL(driver_read_commands(ring_buffer, count_bytes, &bytes), 0);
    CHECK_EQUAL(driver_read_commands(ring_buffer, count_bytes, &bytes), 1);
    CHECK_EQUAL(bytes, 512);
    aa_cnc_release(cnc);
}

TEST(ring_buffer_is_full_where_only_both_ends_together_have_room)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_ring_buffer_t *ring_buffer = &cnc->to_driver;
    const uint8_t message[512] = {0};
    size_t bytes = 0;
    CHECK_EQUAL(aa_ring_buffer_write(ring_buffer, 1, message, 8), AA_OK);
    CHECK_EQUAL(driver_read_commands(ring_buffer, count_bytes, &bytes), 1);
    for (int i = 0; i < 7; i++)
    {
        CHECK_EQUAL(aa_ring_buffer_write(ring_buffer, 1, message, 512), AA_OK);
    }
    /* 440 bytes at the end, 16 at the beginning. */
    CHECK_EQUAL(aa_ring_buffer_write(ring_buffer, 1, message, 440), AA_FULL);
    CHECK_EQUAL(ring_buffer->trailer->tail_position, 16 + 7 * 520);
    CHECK_EQUAL(aa_ring_buffer_write(ring_buffer, 1, message, 432), AA_OK);
    CHECK_EQUAL(ring_buffer->trailer->tail_position, CAPACITY);
    aa_cnc_release(cnc);
}

TEST(ring_buffer_without_room_is_full_until_the_driver_reads)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    const uint8_t message[504] = {0};
    size_t bytes = 0;
    int sent = 0;
    while (aa_cnc_send(cnc, 1, message, sizeof(message)) == AA_OK)
    {
        sent++;
    }
    CHECK_EQUAL(sent, CAPACITY / 512);
    CHECK_EQUAL(aa_cnc_send(cnc, 1, message, 0), AA_FULL);
    CHECK_EQUAL(cnc->to_driver.trailer->tail_position, CAPACITY);
    CHECK_EQUAL(driver_read_commands(&cnc->to_driver, count_bytes, &bytes), sent);
    CHECK_EQUAL(aa_cnc_send(cnc, 1, NULL, 0), AA_OK);
    CHECK_EQUAL(aa_cnc_send(cnc, 1, message, sizeof(message)), AA_OK);
    aa_cnc_release(cnc);
}

TEST(ring_buffer_refuses_long_commands_and_type_ids_below_one)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    const uint8_t message[CAPACITY] = {0};
    CHECK_EQUAL(aa_cnc_send(cnc, 1, message, CAPACITY / 8 + 1), AA_ARGUMENT);
    CHECK_EQUAL(aa_cnc_send(cnc, 1, message, SIZE_MAX), AA_ARGUMENT);
    CHECK_EQUAL(aa_cnc_send(cnc, 0, message, 8), AA_ARGUMENT);
    CHECK_EQUAL(aa_cnc_send(cnc, -1, message, 8), AA_ARGUMENT);
    CHECK_EQUAL(cnc->to_driver.trailer->tail_position, 0);
    CHECK_EQUAL(aa_cnc_send(cnc, 1, message, CAPACITY / 8), AA_OK);
    aa_cnc_release(cnc);
}

/* Dies in the middle of a write: the second page of the message cannot be read. */
static void die_while_writing(aa_ring_buffer_t *ring_buffer)
{
    signal(SIGSEGV, SIG_DFL);
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + 4096, 4096, PROT_NONE);
    aa_ring_buffer_write(ring_buffer, 1, pages + 4096 - 8, 100);
    _exit(0);
}

TEST(ring_buffer_producer_that_dies_between_claim_and_commit_can_be_passed_over)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_ring_buffer_t *ring_buffer = &cnc->to_driver;
    size_t bytes = 0;
    pid_t child = fork();
    if (child == 0)
    {
        die_while_writing(ring_buffer);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status));
    CHECK_EQUAL(aa_ring_buffer_write(ring_buffer, 2, (const uint8_t *)"behind", 6), AA_OK);

    CHECK_EQUAL(driver_read_commands(ring_buffer, count_bytes, &bytes), 0);
    CHECK_EQUAL(*(int32_t *)ring_buffer->records, -(100 + 8));
    CHECK(driver_unblock_commands(ring_buffer));
    CHECK_EQUAL(driver_read_commands(ring_buffer, count_bytes, &bytes), 1);
    CHECK_EQUAL(bytes, 6);
    aa_cnc_release(cnc);
}

TEST(ring_buffer_with_impossible_positions_takes_nothing)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    aa_ring_buffer_trailer_t *trailer = cnc->to_driver.trailer;
    const int64_t nonsense[] = {-8, 4, 1, INT64_MAX, INT64_MAX - 7, INT64_MIN};
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
    {
        atomic_store(&trailer->tail_position, nonsense[i]);
        CHECK_EQUAL(aa_cnc_send(cnc, 1, (const uint8_t *)"12345678", 8), AA_CORRUPT);
    }
    atomic_store(&trailer->tail_position, 64);
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++)
    {
        atomic_store(&trailer->head_position, nonsense[i]);
        atomic_store(&trailer->head_cache_position, nonsense[i]);
        aa_cnc_send(cnc, 1, (const uint8_t *)"12345678", 8);
    }
    aa_cnc_release(cnc);
}

TEST(ring_buffer_hands_out_every_correlation_id_once)
{
    aa_cnc_t *cnc = open_new_cnc(directory);
    pid_t child = fork();
    if (child == 0)
    {
        for (int i = 0; i < 10000; i++)
        {
            aa_cnc_next_correlation_id(cnc);
        }
        _exit(0);
    }
    for (int i = 0; i < 10000; i++)
    {
        aa_cnc_next_correlation_id(cnc);
    }
    int status;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(aa_cnc_next_correlation_id(cnc), 20000);
    aa_cnc_release(cnc);
}
