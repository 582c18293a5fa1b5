import java.util.Locale;

import io.aeron.ExclusivePublication;

/** Mode {@code market-publisher}. */
final class MarketPublisher
{
    /** Milliseconds that a feed stays connected after its last message. */
    private static final long LINGER = 1000;

    private final Pool pool = new Pool(Market.SIZE, true);
    private final ExclusivePublication publication;
    private long messages;
    private long refusals;

    private MarketPublisher(final ExclusivePublication publication)
    {
        this.publication = publication;
    }

    static void run(final Options options) throws InterruptedException
    {
        try (Client client = new Client(options))
        {
            final MarketPublisher feed = new MarketPublisher(client.publication(options.stream));
            Client.awaitSubscriber(feed.publication);
            final Control control = Control.ready();
            final double seconds = feed.publish(options) / 1e9;
            System.out.printf(
                Locale.ROOT,
                "{\"messages\": %d, \"seconds\": %.9f, \"backpressured\": %d}%n",
                feed.messages, seconds, feed.refusals);
            control.linger(LINGER);
        }
    }

    /** Returns the nanoseconds that it took. */
    private long publish(final Options options)
    {
        final double nanosecondsApart = options.rate == 0 ? 0 : 1e9 / options.rate;
        final long start = Market.realtime();
        long elapsed = 0;
        while (options.extent.left(messages, elapsed) > 0)
        {
            // One reading of the clock serves the pace, the end and the message: it costs as much as sending one.
            final long now = Market.realtime();
            elapsed = now - start;
            if (elapsed < messages * nanosecondsApart)
            {
                Thread.onSpinWait();
            }
            else
            {
                send(now);
            }
        }
        return elapsed;
    }

    private void send(final long now)
    {
        final int message = pool.offset(messages);
        Market.sent(pool.buffer, message, now);
        final Wait wait = new Wait("the consumer to make room");
        while (!Client.tryOffer(publication, pool.buffer, message, pool.size))
        {
            refusals++;
            wait.spin();
        }
        messages++;
    }
}
