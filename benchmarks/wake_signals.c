/* How a publisher had best wake a reader in another process that waits in epoll: one round trip of wake-ups by each
 * way.
 *
 *   cc -O2 -pthread wake_signals.c -o wake_signals && ./wake_signals
 *
 * futex: the publisher wakes a thread of the reader's process, which writes to an eventfd that the reader waits for.
 * datagram: it sends one byte to a Unix datagram socket. fifo: it writes one byte to a FIFO. eventfd: it writes to the
 * reader's eventfd, which has been passed to it. Rounds are interleaved, and every wait is a sleep.
 *
 * Medians of three runs on a virtual machine with two cores, in microseconds: futex 30, datagram 16, FIFO 10.6, eventfd
 * 10.1; the call that signals: 8.8, 4.0, 2.3, 2.4. The FIFO is what the library uses: it is as quick as an eventfd, and
 * has a name, so that nothing needs to be passed between processes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 12
#define TRIPS 500

enum
{
    FUTEX,
    DATAGRAM,
    FIFO,
    EVENTFD,
    KINDS
};

static const char *const names[KINDS] = {"futex", "datagram", "fifo", "eventfd"};

/* One direction: what is waited for, how it is signalled, and the futex that the two processes share. */
typedef struct
{
    int readable[KINDS];
    int writable[KINDS];
    _Atomic uint32_t *word;
} side_t;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void check(int result, const char *what)
{
    if (result < 0)
    {
        perror(what);
        exit(1);
    }
}

static side_t make_side(void)
{
    side_t side;
    int pair[2];
    check(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), "socketpair");
    side.readable[DATAGRAM] = pair[0];
    side.writable[DATAGRAM] = pair[1];
    check(pipe(pair), "pipe");
    side.readable[FIFO] = pair[0];
    side.writable[FIFO] = pair[1];
    side.readable[EVENTFD] = side.writable[EVENTFD] = eventfd(0, 0);
    side.readable[FUTEX] = side.writable[FUTEX] = eventfd(0, 0);
    side.word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return side;
}

/* Of the process that is woken by futex. */
static void *forward(void *argument)
{
    const side_t *side = argument;
    uint32_t seen = 0;
    for (;;)
    {
        while (atomic_load(side->word) == seen)
        {
            syscall(SYS_futex, side->word, FUTEX_WAIT, seen, NULL, NULL, 0);
        }
        seen++;
        eventfd_write(side->writable[FUTEX], 1);
    }
    return NULL;
}

static void signal_side(const side_t *side, int kind)
{
    switch (kind)
    {
    case FUTEX:
        atomic_fetch_add(side->word, 1);
        syscall(SYS_futex, side->word, FUTEX_WAKE, 1, NULL, NULL, 0);
        break;
    case DATAGRAM:
        check((int)send(side->writable[DATAGRAM], "", 1, MSG_DONTWAIT | MSG_NOSIGNAL), "send");
        break;
    case FIFO:
        check((int)write(side->writable[FIFO], "", 1), "write");
        break;
    default:
        check(eventfd_write(side->writable[EVENTFD], 1), "eventfd_write");
    }
}

static int watch(const side_t *side)
{
    const int poller = epoll_create1(0);
    for (int kind = 0; kind < KINDS; kind++)
    {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = side->readable[kind]};
        check(epoll_ctl(poller, EPOLL_CTL_ADD, side->readable[kind], &event), "epoll_ctl");
    }
    return poller;
}

static void wait_for_signal(int poller)
{
    struct epoll_event event;
    uint8_t ignored[8];
    check(epoll_wait(poller, &event, 1, -1), "epoll_wait");
    check((int)read(event.data.fd, ignored, sizeof(ignored)), "read");
}

static int compare(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

int main(void)
{
    static int64_t trips[KINDS][ROUNDS * TRIPS], sends[KINDS][ROUNDS * TRIPS];
    side_t there = make_side(), back = make_side();
    pthread_t thread;
    const pid_t child = fork();
    if (child == 0)
    {
        const int poller = watch(&there);
        pthread_create(&thread, NULL, forward, &there);
        for (int i = 0; i < ROUNDS * KINDS * TRIPS; i++)
        {
            wait_for_signal(poller);
            signal_side(&back, i / TRIPS % KINDS);
        }
        _exit(0);
    }
    const int poller = watch(&back);
    pthread_create(&thread, NULL, forward, &back);
    for (int round = 0; round < ROUNDS; round++)
    {
        for (int kind = 0; kind < KINDS; kind++)
        {
            for (int trip = 0; trip < TRIPS; trip++)
            {
                const int64_t begun_ns = now_ns();
                signal_side(&there, kind);
                const int64_t sent_ns = now_ns();
                wait_for_signal(poller);
                trips[kind][round * TRIPS + trip] = now_ns() - begun_ns;
                sends[kind][round * TRIPS + trip] = sent_ns - begun_ns;
            }
        }
    }
    waitpid(child, NULL, 0);
    printf("round trip of two wake-ups, and the call that signals, in microseconds\n");
    for (int kind = 0; kind < KINDS; kind++)
    {
        qsort(trips[kind], ROUNDS * TRIPS, sizeof(int64_t), compare);
        qsort(sends[kind], ROUNDS * TRIPS, sizeof(int64_t), compare);
        printf(
            "%-9s p50 %6.1f  p90 %6.1f   call p50 %5.2f\n", names[kind], (double)trips[kind][ROUNDS * TRIPS / 2] / 1e3,
            (double)trips[kind][ROUNDS * TRIPS * 9 / 10] / 1e3, (double)sends[kind][ROUNDS * TRIPS / 2] / 1e3);
    }
    return 0;
}
