import java.util.Locale;
import java.util.concurrent.TimeUnit;

import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import io.aeron.logbuffer.Header;
import org.agrona.DirectBuffer;

/** Mode {@code market-consumer}. */
final class MarketConsumer implements FragmentHandler
{
    /** One message in so many has its delay measured. */
    private static final long SAMPLING = 64;
    /** A feed that is over and silent for so many nanoseconds has been received. */
    private static final long SILENCE = TimeUnit.MILLISECONDS.toNanos(500);

    private final Tally tally;
    private final Histogram delays = new Histogram();
    private long next;
    private long gaps;

    private MarketConsumer(final boolean ticks)
    {
        tally = new Tally(ticks);
    }

    static void run(final Options options) throws InterruptedException
    {
        try (Client client = new Client(options))
        {
            final Subscription subscription = client.subscription(options.stream);
            Control.ready();
            final MarketConsumer feed = new MarketConsumer(options.ticks);
            final long nanoseconds = feed.consume(subscription, options);
            System.out.printf(
                Locale.ROOT,
                "{%s, \"seconds\": %.9f, \"gaps\": %d, %s}%n",
                feed.tally.json(), nanoseconds / 1e9, feed.gaps, feed.delays.json());
        }
    }

    /** Returns the nanoseconds from the first message to the last. */
    private long consume(final Subscription subscription, final Options options)
    {
        final Wait wait = new Wait("the first message");
        while (subscription.poll(this, options.batch) == 0)
        {
            wait.spin();
        }
        final long first = System.nanoTime();
        long last = first;
        for (;;)
        {
            final int polled = subscription.poll(this, options.batch);
            final long now = System.nanoTime();
            if (polled > 0)
            {
                last = now;
            }
            else if (subscription.imageCount() == 0 ||
                options.extent.left(tally.messages(), now - first) == 0 && now - last >= SILENCE)
            {
                return last - first;
            }
            else
            {
                Thread.onSpinWait();
            }
            if (now - first > options.extent.nanoseconds() + TimeUnit.SECONDS.toNanos(Wait.LIMIT))
            {
                throw new IllegalStateException("the feed does not end");
            }
        }
    }

    public void onFragment(final DirectBuffer buffer, final int offset, final int length, final Header header)
    {
        tally.take(buffer, offset);
        final long sequence = Tick.sequence(buffer, offset);
        if (sequence != next)
        {
            gaps++;
        }
        next = sequence + 1;
        if (sequence % SAMPLING == 0)
        {
            // Never negative but by a step of the clock.
            delays.record(Math.max(Market.realtime() - Market.sent(buffer, offset), 0));
        }
    }
}
