#include "client.h"

#include "fail.h"

void client_fail(const char *what)
{
    fail("%s: %s", what, aeron_errmsg());
}

/* Errors that come later, such as the end of the driver, end the program: that is the client's default handler. */
client_t client_connect(const options_t *options)
{
    if (!options->aeron_dir)
    {
        fail("--aeron-dir is missing");
    }
    client_t client;
    if (aeron_context_init(&client.context) < 0 || aeron_context_set_dir(client.context, options->aeron_dir) < 0 ||
        aeron_init(&client.aeron, client.context) < 0 || aeron_start(client.aeron) < 0)
    {
        client_fail("connect");
    }
    return client;
}

void client_close(const client_t *client)
{
    aeron_close(client->aeron);
    aeron_context_close(client->context);
}

aeron_exclusive_publication_t *client_publication(const client_t *client, const stream_t *stream)
{
    aeron_async_add_exclusive_publication_t *adding;
    if (aeron_async_add_exclusive_publication(&adding, client->aeron, stream->channel, stream->id) < 0)
    {
        client_fail("add publication");
    }
    aeron_exclusive_publication_t *publication;
    wait_t wait = {.what = "a publication"};
    int added;
    while ((added = aeron_async_add_exclusive_publication_poll(&publication, adding)) == 0)
    {
        wait_pause(&wait);
    }
    if (added < 0)
    {
        client_fail("add publication");
    }
    return publication;
}

aeron_subscription_t *client_subscription(const client_t *client, const stream_t *stream)
{
    aeron_async_add_subscription_t *adding;
    if (aeron_async_add_subscription(&adding, client->aeron, stream->channel, stream->id, NULL, NULL, NULL, NULL) < 0)
    {
        client_fail("add subscription");
    }
    aeron_subscription_t *subscription;
    wait_t wait = {.what = "a subscription"};
    int added;
    while ((added = aeron_async_add_subscription_poll(&subscription, adding)) == 0)
    {
        wait_pause(&wait);
    }
    if (added < 0)
    {
        client_fail("add subscription");
    }
    return subscription;
}

void client_wait_for_subscriber(aeron_exclusive_publication_t *publication)
{
    wait_t wait = {.what = "a subscriber"};
    while (!aeron_exclusive_publication_is_connected(publication))
    {
        wait_pause(&wait);
    }
}

link_t link_connect(const options_t *options, const stream_t *receiving)
{
    link_t link = {.client = client_connect(options)};
    link.subscription = client_subscription(&link.client, receiving);
    link.publication = client_publication(&link.client, &options->stream);
    client_wait_for_subscriber(link.publication);
    wait_t wait = {.what = "a publisher"};
    while (!aeron_subscription_is_connected(link.subscription))
    {
        wait_pause(&wait);
    }
    return link;
}
