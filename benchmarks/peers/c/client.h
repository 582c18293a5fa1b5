/* The Aeron client, and what every mode does with it. */
#ifndef CLIENT_H
#define CLIENT_H

#include <aeronc.h>

#include "options.h"
#include "wait.h"

typedef struct
{
    aeron_context_t *context;
    aeron_t *aeron;
} client_t;

client_t client_connect(const options_t *options);
aeron_exclusive_publication_t *client_publication(const client_t *client, const stream_t *stream);
aeron_subscription_t *client_subscription(const client_t *client, const stream_t *stream);

/* Closes it with all that it has added. */
void client_close(const client_t *client);

/* Returns when somebody subscribes to it. */
void client_wait_for_subscriber(aeron_exclusive_publication_t *publication);

/* A publication and the subscription that its messages, or the replies to them, come on. */
typedef struct
{
    client_t client;
    aeron_exclusive_publication_t *publication;
    aeron_subscription_t *subscription;
} link_t;

/* Returns when both are connected. */
link_t link_connect(const options_t *options, const stream_t *receiving);

_Noreturn void client_fail(const char *what);

/* The number of fragments that the handler was given. */
static inline int
client_poll(aeron_subscription_t *subscription, aeron_fragment_handler_t handler, void *to, size_t limit)
{
    int fragments = aeron_subscription_poll(subscription, handler, to, limit);
    if (fragments < 0)
    {
        client_fail("poll");
    }
    return fragments;
}

/* Whether the message was taken; if not, there is no room for it now. */
static inline bool client_try_offer(aeron_exclusive_publication_t *publication, const uint8_t *message, size_t length)
{
    int64_t position = aeron_exclusive_publication_offer(publication, message, length, NULL, NULL);
    if (position > 0)
    {
        return true;
    }
    if (position != AERON_PUBLICATION_BACK_PRESSURED && position != AERON_PUBLICATION_ADMIN_ACTION &&
        position != AERON_PUBLICATION_NOT_CONNECTED)
    {
        client_fail("offer");
    }
    return false;
}

/* Offers a message until it is taken. */
static inline void client_offer(aeron_exclusive_publication_t *publication, const uint8_t *message, size_t length)
{
    wait_t wait = {.what = "room in the log"};
    while (!client_try_offer(publication, message, length))
    {
        wait_spin(&wait);
    }
}

#endif
